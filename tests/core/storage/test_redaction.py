"""No key or password in what is written down: words of a command, parameters, errors of servers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.storage.redaction import redacted, secrets_of, without_secrets


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("max_tokens=512", "max_tokens=512"),
        ("api_key_env=MY_KEY,model=m", "api_key_env=MY_KEY,model=m"),
        ("api_key=sk-1,model=m", "api_key=…,model=m"),
        ("api_key=a b c,model=m", "api_key=…,model=m"),
        ('api_key="a,b",model=m', "api_key=…,model=m"),
        ('api_key=a"b', "api_key=…"),
        ("api_key=a}b,c=1", "api_key=…,c=1"),
        ("models.a.token=sk-1", "models.a.token=…"),
        ("extra_headers={Authorization: Bearer sk-1, x: y}", "extra_headers={…}"),
        ("extra_body={default_headers: {X-Mine: abc}, n: 1}", "extra_body={default_headers: {…}, n: 1}"),
        ("extra_body={api-key: abc, n: 1}", "extra_body={api-key: …, n: 1}"),
        ("headers={X-Mine: abc", "headers={…}"),
        ("h=Authorization: Basic dXNlcjpw", "h=Authorization: Basic …"),
        ('{"headers": {"X-Mine": "abc"}, "n": 1}', '{"headers": {…}, "n": 1}'),
        ("base_url=https://me:sk-1@host/v1", "base_url=https://…@host/v1"),
        ("base_url=https://TOKEN@host/v1,model=m", "base_url=https://…@host/v1,model=m"),
        ("base_url=https://me:P@SS@host/v1", "base_url=https://…@host/v1"),
        ("base_url=[https://a:b@x/v1,https://c:d@y/v1]", "base_url=[https://…@x/v1,https://…@y/v1]"),
        ("base_url=https://host/v1?key=abc&n=1", "base_url=https://host/v1?key=…"),
        ("base_url=http://localhost:8000/v1,model=m", "base_url=http://localhost:8000/v1,model=m"),
        ("pretrained=org/monkey-1,tokenizer=t", "pretrained=org/monkey-1,tokenizer=t"),
        ("stop=hf_" + "a" * 30, "stop=…"),
    ],
)
def test_what_is_secret_in_a_command(word: str, kept: str) -> None:
    assert without_secrets(word) == kept


SECRET = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=30)
PLAIN = SECRET.filter(lambda text: not set(text) & set(",\"'{}[]\\"))
WORDS = [
    *(("api", "key"), ("access", "key"), ("access", "key", "id"), ("private", "key"), ("client", "secret"), ("token",)),
    *(("session", "token"), ("access", "token"), ("refresh", "token"), ("hf", "token"), ("authorization",)),
    *(("proxy", "authorization"), ("x", "api", "key"), ("db", "password"), ("pass", "phrase"), ("set", "cookie")),
    *(("aws", "secret", "access", "key"), ("request", "signature"), ("basic", "auth"), ("service", "credentials")),
]


def spelled(words: tuple[str, ...], style: str) -> str:
    """A name of these words as configurations of one style write it."""
    if style == "camelCase":
        return words[0] + "".join(word.capitalize() for word in words[1:])
    if style == "PascalCase":
        return "".join(word.capitalize() for word in words)
    joined = ("-" if style == "kebab" else "_").join(words)
    return joined.upper() if style == "UPPER" else joined


STYLES = ["camelCase", "PascalCase", "snake", "kebab", "UPPER"]
NAMES = st.builds(spelled, st.sampled_from(WORDS), st.sampled_from(STYLES))
HARMLESS = [
    "max_tokens",
    "maxTokens",
    "tokenizer",
    "monkeys",
    "api_key_env",
    "author",
    "authors",
    "stop_tokens",
    "keys",
]


@given(
    NAMES, PLAIN, st.sampled_from(["{0}={1}", "a=b,{0}={1},c=d", "x={{{0}: {1}}}", "{0}: Bearer {1}", "{0}: Basic {1}"])
)
def test_no_form_of_a_word_keeps_a_secret(name: str, secret: str, form: str) -> None:
    secret = f"S3{secret}"
    assert secret not in without_secrets(form.format(name, secret))
    assert secret not in redacted(form.format(name, secret))


@given(NAMES, SECRET)
def test_no_json_keeps_a_secret(name: str, secret: str) -> None:
    secret = f"S3{secret}"
    for value in ({name: secret}, {"extra_body": [{name: secret}]}, {"default_headers": {"X-Mine": secret}}):
        assert secret not in json.dumps(without_secrets(value))
        assert json.dumps(secret)[1:-1] not in without_secrets(json.dumps(value))
        assert secret in set(secrets_of(value))


@pytest.mark.parametrize("name", ["sessionToken", "accessKey", "client_secret", "Authorization", "sessiontoken"])
def test_names_that_services_give_their_secrets(name: str) -> None:
    assert without_secrets({name: "x"}) == {name: "…"} and without_secrets(f"{name}=xyz") == f"{name}=…"


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_secret_stays(name: str) -> None:
    assert without_secrets({name: "x"}) == {name: "x"} and without_secrets(f"{name}=xyz") == f"{name}=xyz"


@given(PLAIN.filter(lambda text: not set(text) & set("/?#<>")), st.booleans())
def test_no_address_keeps_its_user(secret: str, named: bool) -> None:
    address = f"https://{'me:' if named else ''}S3{secret}@host/v1"
    for text in (address, f"base_url={address},model=m", f"cannot reach {address}: refused"):
        assert f"S3{secret}" not in without_secrets(text) and f"S3{secret}" not in redacted(text)
        assert "@host/v1" in without_secrets(text)


@given(SECRET, st.text(max_size=40), st.text(max_size=40))
def test_a_known_secret_is_in_no_error(secret: str, before: str, after: str) -> None:
    secret = f"S3{secret}"
    assert secret not in redacted(f"{before}{secret}{after}", {secret})


def test_prose_stays_what_it_is() -> None:
    for text in (
        "max_tokens: 512 is too large for this model",
        "no API key in OPENAI_API_KEY; point base_url= at your own server",
        "HTTP 503: the server at https://host:8000/v1 is overloaded",
        "tokens: 100, keys of the cache: 3",
    ):
        assert redacted(text) == text
