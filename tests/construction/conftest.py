"""A clip whose every frame and every second of sound tells its time, and a real endpoint that reads both."""

from __future__ import annotations

import base64
import email
import hashlib
import io
import json
import threading
import time
import wave
from collections.abc import Callable, Iterator
from email.policy import HTTP
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

WIDTH, HEIGHT, BITS, RATE = 220, 96, 11, 10
"""A frame has eleven bars of 20 pixels: its number of tenths of a second, in bits, the lowest first."""
HERTZ, PER_SECOND = 16_000, 5
"""The sound of second s has 200 + 5 s hertz."""


def bars(tenths: int) -> np.ndarray:
    """The picture of one frame, (HEIGHT, WIDTH, 3) bytes."""
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    for bit in range(BITS):
        if tenths >> bit & 1:
            image[:, bit * WIDTH // BITS : (bit + 1) * WIDTH // BITS] = (255, 255, 255)
    return image


def read_bars(picture: bytes) -> int:
    """Tenths of a second that a picture in any format shows."""
    with av.open(io.BytesIO(picture)) as container:
        image = next(container.decode(video=0)).to_ndarray(format="rgb24").astype(float).mean(2)
    middles = [int((bit + 0.5) * image.shape[1] / BITS) for bit in range(BITS)]
    return sum(1 << bit for bit, x in enumerate(middles) if image[:, x - 2 : x + 3].mean() > 127)


def tone(second: int) -> np.ndarray:
    """The sound of one second, (1, HERTZ) 16-bit samples."""
    wave_form = np.sin(2 * np.pi * (200 + PER_SECOND * second) * np.arange(HERTZ) / HERTZ)
    return (wave_form * 8_000).astype(np.int16)[None]


def read_tones(audio: bytes) -> list[int]:
    """The second that each second of a WAV file sounds like."""
    with wave.open(io.BytesIO(audio)) as file:
        rate = file.getframerate()
        assert (rate, file.getnchannels(), file.getsampwidth()) == (HERTZ, 1, 2)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)
    found = []
    for at in range(0, len(samples) - rate // 2, rate):
        piece = samples[at : at + rate]
        peak = np.argmax(np.abs(np.fft.rfft(piece))) * rate / len(piece)
        found.append(round((peak - 200) / PER_SECOND))
    return found


def make_clip(
    path: Path, seconds: float, codec: str = "libx264", audio: bool = True, first: int = 0, options: Any = None,
    silent: Any = (),
) -> Path:  # fmt: skip
    """Encode ``seconds`` of bars and tones; ``first`` is the first frame's number of tenths."""
    with av.open(str(path), "w", options=options or {}) as out:
        video = out.add_stream(codec, rate=RATE)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        if codec == "libx264":
            video.options = {"preset": "ultrafast", "g": "70", "bf": "2"}
        if codec == "libvpx":
            video.options = {"deadline": "realtime", "cpu-used": "8"}
        sound = out.add_stream("aac", rate=HERTZ, layout="mono") if audio else None
        for number in range(round(seconds * RATE)):
            if sound is not None and number % RATE == 0:
                heard_now = tone(number // RATE) * (number // RATE not in silent)
                heard = av.AudioFrame.from_ndarray(heard_now, format="s16", layout="mono")
                heard.sample_rate, heard.pts = HERTZ, number // RATE * HERTZ
                out.mux(sound.encode(heard))
            frame = av.VideoFrame.from_ndarray(bars(first + number), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            out.mux(video.encode(frame))
        out.mux(video.encode(None))
        if sound is not None:
            out.mux(sound.encode(None))
    return path


class Studio:
    """Captions what the pictures show and writes down what the sound says; keeps what it was sent, in order."""

    def __init__(self) -> None:
        self.captions: list[list[int]] = []
        """Of each caption request, the tenths that its pictures show."""
        self.bodies: list[dict[str, Any]] = []
        self.heard: list[list[int]] = []
        """Of each transcription request, the seconds that its sound has."""
        self.forms: list[dict[str, Any]] = []
        self.digests: list[str] = []
        """SHA-256 of the first picture or the sound of each request, as the reply store names it."""
        self.timed = True
        """Whether it takes response_format verbose_json."""
        self.fails: Callable[[int], int | None] = lambda number: None
        """Status to refuse request ``number`` (from 0) with."""
        self.excuse = "refused"
        self.say: Callable[[list[int]], str] = lambda shown: f"- Bars {shown[0]} to {shown[-1]}."
        self.usage: dict[str, Any] = {"type": "duration", "seconds": 30}
        self.delay = 0.0
        self.models = ["eye", "ear"]
        self._number, self._lock = 0, threading.Lock()
        studio = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                listed = [{"id": name, "object": "model"} for name in studio.models]
                self._give(*((200, {"data": listed}) if self.path == "/v1/models" else (404, {"error": {}})))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with studio._lock:
                    number, studio._number = studio._number, studio._number + 1
                time.sleep(studio.delay)
                if (status := studio.fails(number)) is not None:
                    self._give(status, {"error": {"message": studio.excuse, "code": status}})
                elif self.path == "/v1/chat/completions":
                    self._give(*studio.caption(json.loads(body)))
                else:
                    self._give(*studio.transcribe(self.headers["Content-Type"], body))

            def _give(self, status: int, document: Any) -> None:
                data = json.dumps(document).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    self.close_connection = True  # the client was killed

            def log_message(self, *arguments: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that is killed is what some tests are about."""

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    @property
    def asked(self) -> int:
        """Requests so far, refused ones included."""
        return self._number

    def caption(self, body: dict[str, Any]) -> tuple[int, Any]:
        urls = [p["image_url"]["url"] for p in body["messages"][-1]["content"] if p["type"] == "image_url"]
        assert all(url.startswith("data:image/jpeg;base64,") for url in urls)
        images = [base64.b64decode(url.split(",")[1]) for url in urls]
        shown = [read_bars(image) for image in images]
        with self._lock:
            self.digests.append(hashlib.sha256(images[0]).hexdigest())
            self.captions.append(shown)
            self.bodies.append(body)
        message = {"role": "assistant", "content": self.say(shown)}
        usage = {"prompt_tokens": 1_000, "completion_tokens": 10, "total_tokens": 1_010}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        return 200, {"id": "1", "object": "chat.completion", "model": "eye", "choices": choices, "usage": usage}

    def transcribe(self, kind: str, body: bytes) -> tuple[int, Any]:
        parsed = email.message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body, policy=HTTP)
        form = {
            part.get_param("name", header="content-disposition"): part.get_content() for part in parsed.iter_parts()
        }
        form = {name: value.strip() if isinstance(value, str) else value for name, value in form.items()}
        audio = form.pop("file")
        with self._lock:
            self.forms.append(form)
            self.digests.append(hashlib.sha256(audio).hexdigest())
        if form["response_format"] == "verbose_json" and not self.timed:
            message = "response_format 'verbose_json' is not compatible with model 'ear'. Use 'json' instead."
            return 400, {"error": {"message": message, "param": "response_format", "code": "unsupported_value"}}
        seconds = read_tones(audio)
        with self._lock:
            self.heard.append(seconds)
        reply: dict[str, Any] = {"text": " ".join(f"second {s}" for s in seconds), "usage": self.usage}
        if form["response_format"] == "verbose_json":
            reply["segments"] = [
                {"start": at, "end": at + 1.0, "text": f" second {s}"} for at, s in enumerate(seconds) if s % 10 == 0
            ]
        return 200, reply

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def studio() -> Iterator[Studio]:
    started = Studio()
    yield started
    started.close()


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a clip of two minutes, ``day.mp4``."""
    folder = tmp_path_factory.mktemp("clips")
    make_clip(folder / "day.mp4", 120)
    return folder
