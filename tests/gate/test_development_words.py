"""Which words of the development data a candidate may not hold."""

from pathlib import Path

from harness.data.lifelog import make_lifelog
from harness.data.native import load
from harness.opening import development_words


def test_names_are_forbidden_and_common_words_are_not(tmp_path: Path) -> None:
    make_lifelog(tmp_path / "data", seed=1, scale=0.2)
    data = load(tmp_path / "data")
    videos = {q.video for q in data.questions("development")}
    speakers = {u.speaker.casefold() for v in videos for w in data.videos[v].windows for u in w.transcript if u.speaker}
    names = development_words(data).names
    assert names and names <= {part for speaker in speakers for part in speaker.split()}
    assert not names & {"people", "person", "other", "place", "small", "time"}
    others = {q.video for q in data.questions("test")}
    hidden = {u.speaker.casefold() for v in others for w in data.videos[v].windows for u in w.transcript if u.speaker}
    assert not names & hidden, "names of the test split are not shown to the gate, nor through it to an author"
