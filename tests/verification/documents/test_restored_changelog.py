import pytest

from handrail.verification.documents.changelog import check_changelog, restored_changelog

OLD = b"""\
# Changelog

All changes.

## Unreleased
- Soon

## [2.0.0] - 2026-03-01
- Two
- Two more

## [1.1.0] - 2026-02-01
- One point one

## [1.0.0] - 2026-01-01
- One
"""
NEW_ENTRY = b"## [2.1.0] - 2026-04-01\n- Newest\n\n"
MARK = b"## [2.0.0]"
ATTACKS = {
    "deleted": lambda data: data.replace(b"## [1.1.0] - 2026-02-01\n- One point one\n\n", b""),
    "shortened": lambda data: data.replace(b"- Two more\n", b""),
    "re-dated": lambda data: data.replace(b"2026-02-01", b"2025-02-01"),
    "reordered": lambda data: data.replace(b"## [1.0.0] - 2026-01-01\n- One\n", b"").replace(
        MARK, b"## [1.0.0] - 2026-01-01\n- One\n\n" + MARK
    ),
    "reworded": lambda data: data.replace(b"- One point one", b"- Something else"),
    "preamble": lambda data: data.replace(b"All changes.\n", b""),
    "emptied": lambda _: b"# Changelog\n",
}


@pytest.mark.promise("FIX-3")
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_attacked_changelog_is_restored_byte_for_byte(attack) -> None:  # type: ignore[no-untyped-def]
    attacked = attack(OLD)
    assert check_changelog("CHANGELOG.md", OLD, attacked), "the attack is found"
    assert restored_changelog("CHANGELOG.md", OLD, attacked) == OLD


@pytest.mark.promise("FIX-3")
@pytest.mark.parametrize(
    "attack", [ATTACKS[name] for name in ("deleted", "shortened", "re-dated", "reordered")]
)
def test_what_was_added_is_kept(attack) -> None:  # type: ignore[no-untyped-def]
    sound = OLD.replace(b"- Soon\n", b"- Soon\n- And more\n").replace(MARK, NEW_ENTRY + MARK)
    assert not check_changelog("CHANGELOG.md", OLD, sound)
    assert restored_changelog("CHANGELOG.md", OLD, attack(sound)) == sound
