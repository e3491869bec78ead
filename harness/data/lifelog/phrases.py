"""How events are told. Word templates only: filled by ``telling.fill``, never by ``str.format``.

``{A}`` is who acts (``{A_}`` as an object), ``{B}`` and ``{C}`` are others, ``{X}`` is a bystander, ``{o}`` the thing,
``{ing}`` a pastime's -ing form, ``{s}`` the place, ``{d}`` the detail (``{ds}`` inflected); ``{p}``, ``{t}``, ``{w}``
are a wrong place, thing and weekday. ``[s]`` and ``[ies|y]`` are verb endings (he or she | I). A line that starts with
``{A}:`` is spoken. Each variant is a tuple of windows, each window a tuple of lines; the first variant is the plainest.
"""

from __future__ import annotations

Variant = tuple[tuple[str, ...], ...]


def one(*lines: str) -> tuple[Variant, ...]:
    """Variants of one line in one window."""
    return tuple(((line,),) for line in lines)


TELL: dict[str, tuple[Variant, ...]] = {
    "enter": one("I walk into the {o}.", "I go over to the {o}.", "I step into the {o}.", "I am in the {o} now."),
    "put": (
        *one(
            "{A} put[s] the {o} on the {s}.",
            "{A} leave[s] the {o} on the {s}.",
            "{A} set[s] the {o} down on the {s}.",
            "{A} place[s] the {o} on the {s} with care.",
            "On the {s}, {A} find[s] some room for the {o}.",
        ),
        (("{A} pick[s] up the {o}.",), ("{A} put[s] it on the {s}.",)),
        (("{A} carr[ies|y] the {o} around for a moment.",), ("{A} leave[s] it on the {s}.",)),
        (("{A} come[s] in with the {o}.",), ("{A} set[s] it down on the {s}.",)),
    ),
    "use": one(
        "{A} use[s] the {o} for a while.",
        "{A} work[s] with the {o}.",
        "{A} tr[ies|y] out the {o}.",
        "{A} use[s] the {o} again.",
        "{A} {am} busy using the {o}.",
    ),
    "give": (
        *one(
            "{A} hand[s] the {o} to {B}.",
            "{A} give[s] {B} the {o}.",
            "{A} pass[es|] the {o} over to {B}.",
            "{A} lend[s] the {o} to {B}.",
        ),
        (("{A} take[s] the {o} out of a bag.",), ("{A} hand[s] it to {B}.",)),
        (("{A} look[s] for somebody who needs the {o}.",), ("{A} give[s] it to {B}.",)),
    ),
    "buy": (
        *one(
            "{A} come[s] back from the {s} with {o}.",
            "{A} show[s] everybody {o} from the {s}.",
            "{A} ha[s|ve] been to the {s} and bought {o}.",
        ),
        (("{A} come[s] back from the {s}.",), ("{A} take[s] {o} out of a paper bag.",)),
        (("{A} return[s] from the {s} with a full bag.",), ("{A} unpack[s] {o} and show[s] the receipt.",)),
    ),
    "joint": one(
        "{A} {ds} the {o}, and {B} helps.",
        "Together with {B}, {A} {ds} the {o}.",
        "{B} joins in and {A} {ds} the {o}.",
    ),
    "meal": (
        *one(
            "We eat {o}, {B}, {C} and I.", "{B} and {C} share some {o} with me.", "I eat {o} together with {B} and {C}."
        ),
        (("I sit down at the table with {B} and {C}.",), ("We eat {o}.",)),
        (("{B} and {C} join me at the table.",), ("There is {o} on our plates.",)),
        (("{C} lays the table for {B} and me.",), ("I help myself to some {o}.",)),
        (("I bring the {o} to the table.",), ("{B} and {C} sit down next to me and we start eating.",)),
    ),
    "drink": one(
        "{A} drink[s] a glass of {o}.",
        "{A} pour[s] out some {o} and sip[s] it.",
        "{A} ha[s|ve] some {o}.",
        "{A} fetch[es|] a mug of {o}.",
        "{A} finish[es|] a bottle of {o}.",
    ),
    "pastime": one(
        "{A} spend[s] some time {ing} by the {s}.",
        "{A} {am} {ing} next to the {s}.",
        "{A} start[s] {ing} close to the {s}.",
        "By the {s}, {A} {am} {ing} again.",
    ),
    "ask": (
        (("{A}: {B}, could you {o} on {d}?", "{B}: Sure, I can do that."),),
        (("{A}: Would you {o} for me, {B}? {d} would be best.", "{B}: All right."),),
        (("{A}: {B}, please remember to {o} on {d}.", "{B}: I will."),),
        (("{A}: I need you to {o}, {B}.", "{B}: Fine. I'll do it on {d}."),),
    ),
    "move": (
        (("{A}: Change of plan, I'll {o} on {d} instead.",),),
        (("{A}: I won't have time before, so I'm going to {o} on {d}.",),),
        (("{A}: I have to put it off. I'll {o} on {d}.",),),
    ),
    "takeover": (
        (("{A}: {B}, leave it to me, I'm going to {o}.", "{B}: Oh, thank you!"),),
        (("{A}: I'll {o} instead of {B}.",),),
        (("{B}: I don't think I can {o} after all.", "{A}: Then I'll do it."),),
    ),
}

HANDLE: dict[str, tuple[str, ...]] = {
    "clean": ("{A} clean[s] the {o}.", "{A} wipe[s] down the {o}.", "{A} give[s] the {o} a good clean."),
    "repair": ("{A} repair[s] the {o}.", "{A} fix[es|] the {o}.", "{A} get[s] the {o} working again."),
    "drop": ("{A} drop[s] the {o}.", "{A} let[s] the {o} fall to the floor.", "{A} drop[s] the {o} by accident."),
    "label": ("{A} label[s] the {o}.", "{A} stick[s] a label on the {o}.", "{A} write[s] a name on the {o}."),
    "weigh": ("{A} weigh[s] the {o}.", "{A} check[s] the weight of the {o}.", "{A} weigh[s] the {o} on a scale."),
    "wrap": ("{A} wrap[s] the {o} in paper.", "{A} wrap[s] up the {o}.", "{A} pack[s] the {o} in wrapping paper."),
    "inspect": (
        "{A} inspect[s] the {o}.",
        "{A} examine[s] the {o} closely.",
        "{A} turn[s] the {o} over and inspect[s] it.",
    ),
    "photograph": (
        "{A} photograph[s] the {o}.",
        "{A} take[s] a photo of the {o}.",
        "{A} take[s] a picture of the {o}.",
    ),
}

PAST: dict[str, tuple[str, ...]] = {
    "clean": ("cleaned", "scrubbed"),
    "repair": ("repaired", "mended"),
    "drop": ("dropped", "let go of"),
    "label": ("labelled", "put a sticker on"),
    "weigh": ("weighed", "found out the weight of"),
    "wrap": ("wrapped", "packed up"),
    "inspect": ("inspected", "looked closely at"),
    "photograph": ("photographed", "took a picture of"),
    "carry": ("carried", "hauled"),
    "set up": ("set up", "built up"),
    "take apart": ("took apart", "dismantled"),
    "look for": ("looked for", "searched for"),
}
"""Past tense as choices use it, then as some questions put it."""

DECOYS: dict[str, tuple[str, ...]] = {
    "put": (
        "{X}: The {o} used to be on the {p}, {A}.",
        "{X}: {A}, why is the {o} never on the {p}?",
        "{A} walk[s] past the {p} and glance[s] at the {o}.",
        "{X}: I would keep the {o} on the {p}.",
    ),
    "use": (
        "{X}: Can I use the {o} tomorrow?",
        "{X} looks at the {o} but does not use it.",
        "{X}: I have never used the {o}.",
        "{X}: Who wants to use the {o} next?",
    ),
    "give": (
        "{X}: {A}, I also want the {o}.",
        "{A}: {X}, I can't give you the {o} today.",
        "{X} asks {A_} for the {o} and gets no answer.",
        "{X}: I don't need the {o}, {A}, give it to somebody else.",
    ),
    "buy": (
        "{A}: The {s} had no {t} left.",
        "{X}: {A}, are there {t} at the {s}?",
        "{X}: I nearly bought {t} at the {s}, {A}.",
        "{A}: I forgot the {t}, and the {s} is closed now.",
    ),
    "handle": (
        "{X}: Shall I {d} the {o} tomorrow?",
        "{X}: Somebody should {d} the {o} one day.",
        "{A}: I will not {t} the {o}, {X}.",
        "{X}: {A}, did you ever {t} the {o}?",
    ),
    "joint": (
        "{X}: {A}, I could have helped you with the {o}.",
        "{X} watches {A_} with the {o} but does not help.",
        "{X}: Tomorrow we {d} the {o} together, {A}.",
    ),
    "meal": (
        "{X}: I would love some {o} again soon.",
        "{X}: I never eat {o}.",
        "{X}: Who made the {o}? I only had bread.",
    ),
    "drink": (
        "{A}: No {t} for me, thanks.",
        "{X}: {A}, shall I get you some {t}?",
        "{X}: {A}, do you ever drink {t}?",
        "{A}: Whose {t} is this?",
    ),
    "pastime": (
        "{X}: I would like to start {ing}, too.",
        "{A}: The {p} is no good for {ing}.",
        "{X}: {A}, is {ing} difficult?",
        "{X}: {A}, come over to the {p}.",
    ),
    "ask": (
        "{A}: {B}, it once took me a day to {t}.",
        "{X}: {A}, don't ask me to {o}.",
        "{X}: Did {A_} ask somebody to {t}?",
        "{X}: I'm busy on {w}, {B}.",
    ),
    "move": ("{X}: {w} is no good if you want to {o}.", "{X}: {A}, are you free on {w}?"),
    "takeover": ("{X}: I can't {o}, sorry.", "{X}: {A}, I nearly had to {o} myself."),
}
"""Lines near the truth that say nothing of it: other people, other places, wishes, denials."""

AMBIENT = (
    "{X} is looking at a phone.",
    "{X} stands by the door.",
    "{X} laughs at something on a screen.",
    "{X} sits down and says nothing.",
    "{X} is humming a song.",
    "{X} opens a window.",
    "I smile at {X}.",
    "I sit next to {X} for a moment.",
    "I look around the room.",
    "I wait for a moment.",
    "I check the time on my phone.",
    "I turn my head to the left.",
    "I rub my eyes.",
    "I tidy up a little.",
    "I scroll through my messages.",
    "I get up and shake my arms.",
    "I open the door and close it again.",
    "I straighten a picture on the wall.",
    "Everybody is busy with something.",
    "The light in the room is bright.",
    "Somebody is moving chairs in the background.",
    "Music is playing softly.",
    "A phone rings and nobody picks it up.",
    "It is quiet for a while.",
    "The door is ajar and there is a draught.",
    "Some people are laughing.",
    "A car drives past outside.",
    "I look for a place to sit.",
    "The floor creaks.",
    "Nothing much happens.",
)

CHATTER = (
    "It is really warm today.",
    "Did you sleep well?",
    "I had such a strange dream.",
    "What time is it?",
    "Wait a second.",
    "That's funny.",
    "Really? I didn't know that.",
    "Let's see how it goes.",
    "I'm a bit tired.",
    "Where did everyone go?",
    "My back hurts.",
    "Do you hear that noise?",
    "No idea, honestly.",
    "Okay, one more time.",
    "That was a long day.",
    "Haha, exactly.",
    "I agree with you.",
    "Hmm, maybe.",
    "Could you move over a little?",
    "I saw a good film last week.",
    "The neighbours are loud again.",
    "Careful, it's slippery there.",
    "I'll be right back.",
    "You look happy today.",
    "How was your trip?",
    "I still have to answer some messages.",
    "It might rain later.",
    "I can't find my glasses.",
    "We should do this more often.",
    "Not now, please.",
    "What do you think?",
    "That sounds like a plan.",
    "I read about that somewhere.",
    "Never mind.",
    "My sister called yesterday.",
    "The train was late again.",
)
