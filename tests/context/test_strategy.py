"""Which models are worked with how: decided in one place."""

from pathlib import Path

from handrail.context.small.strategy import OneAction
from handrail.context.strategy import CAPABLE, strategy_for
from handrail.models.model import Capabilities, Request, UserTurn

DECIDING = {"context/strategy.py"}
SAYING = {"models/model.py", "models/connect.py", "models/embedded/embedded_model.py"}
ADAPTING = {"context/small/one_action_model.py"}


def test_small_models_have_a_strategy_of_their_own() -> None:
    assert strategy_for(Capabilities()) is CAPABLE
    assert isinstance(strategy_for(Capabilities(one_action=True)), OneAction)


def test_only_the_strategy_asks_whether_a_model_is_small() -> None:
    source = Path("src/handrail")
    found = {
        str(path.relative_to(source)) for path in source.rglob("*.py") if "one_action" in path.read_text()
    }
    importing = {"context/small/strategy.py"}  # the module of that name
    assert found - importing == DECIDING | SAYING | ADAPTING


def test_a_small_model_is_asked_only_the_question_beside_the_conversation() -> None:
    full = Request("Everything.", (UserTurn("before"), UserTurn("now")), max_output_tokens=900)
    assert strategy_for(Capabilities()).side_request("route", full, "now") is full
    short = strategy_for(Capabilities(one_action=True)).side_request("route", full, "now")
    assert short.messages == (UserTurn("now"),)
    assert short.output_schema
    assert short.max_output_tokens < 100
