"""What the engine's configuration may say of Aerie, and what stops the start."""

import pytest
from aerie_draft import DType
from aerie_draft.vllm.settings import Settings, SettingsError


def settings(**given):
    return Settings.from_config({"aerie": {"address": "127.0.0.1:50051", **given}})


def test_an_address_is_enough():
    assert settings() == Settings(address="127.0.0.1:50051")
    assert settings().boundaries is None
    assert settings().transport == "stream"


def test_every_setting_arrives():
    given = dict(
        drafter="a",
        boundaries=[2, 15, 27],
        transport="unary",
        deadline=1,
        keep_rows=7,
        dtype="bfloat16",
        client="x",
        start_timeout=0.5,
        required=False,
    )
    expected = {**given, "boundaries": (2, 15, 27), "dtype": DType.BFLOAT16, "deadline": 1.0}
    assert settings(**given) == Settings(address="127.0.0.1:50051", **expected)


@pytest.mark.parametrize("config", [None, {}, {"aerie": None}, {"aerie": "127.0.0.1:50051"}])
def test_without_a_table_the_message_shows_one(config):
    with pytest.raises(SettingsError, match='expected a table .*--additional-config.*"address"'):
        Settings.from_config(config)


@pytest.mark.parametrize(
    "given, words",
    [
        (dict(adress="x"), "adress; expected only address"),
        (dict(address=""), "address is ''; expected"),
        (dict(address=50051), "address is 50051; expected text"),
        (dict(boundaries=[]), r"boundaries is \[\]; expected a list"),
        (dict(boundaries=[2, 2]), "distinct boundaries"),
        (dict(boundaries=[True, 2]), "distinct boundaries"),
        (dict(boundaries=[-1, 2]), "distinct boundaries"),
        (dict(boundaries="2,15,27"), "distinct boundaries"),
        (dict(deadline=0), "deadline is 0; expected a number of seconds above 0"),
        (dict(deadline=float("nan")), "deadline is nan; expected"),
        (dict(deadline=float("inf")), "deadline is inf; expected"),
        (dict(deadline="1s"), "deadline is '1s'; expected"),
        (dict(keep_rows=0), "keep_rows is 0; expected a whole number of rows from 1"),
        (dict(keep_rows=2.5), "keep_rows is 2.5"),
        (dict(transport="http"), "transport is 'http'; expected one of stream, unary"),
        (dict(dtype="int8"), "dtype is 'int8'; expected one of auto, float32"),
        (dict(required="no"), "required is 'no'; expected true or false"),
        (dict(required=False), "required is false and aerie.boundaries is not set"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value_and_what_was_expected(given, words):
    with pytest.raises(SettingsError, match=words):
        settings(**given)


def test_the_token_is_the_content_of_its_file(tmp_path):
    file = tmp_path / "token"
    file.write_text("secret\n")
    assert settings(token_file=str(file)).token() == "secret"
    assert settings().token() == ""


@pytest.mark.parametrize("content", [None, "", " \n", "two\nlines", "naïve"])
def test_a_token_file_without_a_token_is_named(tmp_path, content):
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SettingsError, match=f"token_file {file} .*; expected .*; "):
        settings(token_file=str(file)).token()
