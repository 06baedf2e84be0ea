"""The three ways to a model: paste a key, use a local server, download the small model."""

from handrail.app.models import LOCAL_PORTS, PROVIDERS, SmallModel, install_runtime
from handrail.interfaces.web.conversation.blocks import button
from handrail.interfaces.web.html import Html, h


def model_doors(small: SmallModel, stored: str) -> Html:
    """The ways; `stored` says how a pasted key is kept."""
    ports = ", ".join(f"{name} at port {port}" for name, port in LOCAL_PORTS.items())
    options = [
        h("option", "found by its form", value=""),
        *(h("option", each, value=each) for each in PROVIDERS),
    ]
    key = h(
        "section",
        h("h3", "Paste a key"),
        h("p", "It is checked with one short question, then stored for you alone."),
        h("p", f"It is kept {stored}.", class_="soft"),
        h(
            "form",
            h("label", "Key", for_="key"),
            h(
                "input",
                type="password",
                id="key",
                name="key",
                autocomplete="off",
                required=True,
                spellcheck="false",
            ),
            h("label", "Provider", for_="provider"),
            h("select", *options, id="provider", name="provider"),
            h("button", "Check and store", type="submit", class_="primary"),
            data_act="key-form",
        ),
        class_="door",
    )
    server = h(
        "section",
        h("h3", "Use a local server"),
        h("p", f"Looked for: {ports}. Start one, load a model, then look again."),
        h("div", id="servers", class_="chips"),
        button("Look for servers", "find-servers"),
        class_="door",
    )
    size = f"{small.size / 1e9:.1f} GB"
    have = f" {small.downloaded / 1e6:,.0f} MB of it are already here." if small.downloaded else ""
    way: Html = button(f"Download {size}", "download-model")
    if not small.has_runtime:
        way = h("p", "First install the library that runs it: ", h("code", install_runtime()))
    elif small.path():
        way = h("p", "It is here, and answers where nothing else is chosen.")
    download = h(
        "section",
        h("h3", "Download a small model"),
        h("p", f"{small.name}, {size}, once. It answers on this machine, without key and network.{have}"),
        way,
        h("progress", id="download", value="0", max="1", hidden=True, aria_label="Download"),
        h("p", id="download-words", role="status"),
        class_="door",
    )
    return h("div", key, server, download, class_="doors")
