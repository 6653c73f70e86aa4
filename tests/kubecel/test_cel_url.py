from __future__ import annotations

import pytest

from kubecel.kubernetes_types.urls import is_url, parse_url


@pytest.mark.parametrize(
    ("text", "host", "hostname", "port", "path"),
    [
        ("https://a.b:80/p", "a.b:80", "a.b", "80", "/p"),
        ("https://[::1]:80/", "[::1]:80", "::1", "80", "/"),
        ("https://[::1]", "[::1]", "::1", "", ""),
        ("https://u:p@a.b", "a.b", "a.b", "", ""),
        ("https://a%C3%A9/", "aé", "aé", "", "/"),
        ("mailto:a@b", "", "", "", ""),
        ("/a%2Fb", "", "", "", "/a%2Fb"),
        ("//a.b/c", "a.b", "a.b", "", "/c"),
        ("///c", "", "", "", "///c"),
        ("/é{}", "", "", "", "/%C3%A9%7B%7D"),
        ("*", "", "", "", "*"),
        # Go 1.26 (net/url, parseHost): several hosts, where it is not HTTP, and zones.
        ("mongodb://a:1,b:2/", "a:1,b:2", "a:1,b", "2", "/"),
        ("//a:1:2", "a:1:2", "a:1", "2", ""),
        ("http://a]b/", "a]b", "a]b", "", "/"),
        (
            "http://[::ffff:1.2.3.4]:/",
            "[::ffff:1.2.3.4]:",
            "::ffff:1.2.3.4",
            "",
            "/",
        ),
        (
            "http://u@[fe80::1%25%65n%200é]",
            "[fe80::1%en 0é]",
            "fe80::1%en 0é",
            "",
            "",
        ),
        (
            "http://[fe80::1%25%2520]:1",
            "[fe80::1%%20]:1",
            "fe80::1%%20",
            "1",
            "",
        ),
    ],
)
def test_parts(
    text: str, host: str, hostname: str, port: str, path: str
) -> None:
    url = parse_url(text)
    assert (url.host, url.hostname, url.port, url.escaped_path) == (
        host,
        hostname,
        port,
        path,
    )
    assert is_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        ":a",
        "../a",
        "https://a b/",
        "https://a:b/",
        "https://[::1/",
        "/%zz",
        "/\n",
        "https://a%41/",
        "http://u^@a",
        "http://::1/",
        "HTTPS://localhost:80:80/",
        "ftp://a:1:b/",
        "http://[abc]/",
        "http://[]/",
        "http://[1.2.3.4]/",
        "http://a[::1]/",
        "http://[::1%en0]/",
        "http://[::1%25]/",
        "http://[::1%25a%2Fb]/",
        "http://[::1%25%c3%a9]/",
        "http://[::1%25a^]/",
    ],
)
def test_what_is_no_url(text: str) -> None:
    assert not is_url(text)
    with pytest.raises(ValueError, match="URL parse error"):
        parse_url(text)


def test_parameters() -> None:
    assert parse_url("/?a=1&b&a=%32&%zz=1&c;d=1&=x#f").parameters == {
        "a": ("1", "2"),
        "b": ("",),
        "": ("x",),
    }
    assert parse_url("/p?q#f").fragment == "f"
