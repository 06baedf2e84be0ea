// The page's one dialog: rewind previews, help, renaming.

import { Problem, command, element, fill, json, make, part, request, session, toast } from "./api.js";

const dialog = document.getElementById("dialog");

export function openDialog(title, ...content) {
  const close = make(
    "button",
    { type: "button", class: "quiet", "data-act": "dialog-close", "aria-label": "Close" },
    "×",
  );
  const head = make(
    "div",
    { class: "dialog-head" },
    make("h2", { id: "dialog-title" }, title),
    make("span", { class: "space" }),
    close,
  );
  dialog.replaceChildren(head, make("div", { class: "dialog-body" }, ...content));
  if (!dialog.open) dialog.showModal();
}

// What a form does; what goes wrong is said in the form.
export async function shownIn(problem, action) {
  problem.textContent = "";
  try {
    await action();
  } catch (refused) {
    if (!(refused instanceof Problem)) throw refused;
    problem.textContent = `${refused.message} ${refused.advice}`.trim();
  }
}

// Undo, rewind or redo: done at once where nothing stands in the way and only files change, else shown and asked.
export async function rewindDialog({ to = "", only = false, redo = false }) {
  const query = new URLSearchParams({ to, only: only ? "1" : "", redo: redo ? "1" : "" });
  const found = await json(`/s/${session}/rewind?${query}`);
  if (found.command) {
    const { type, ...fields } = found.command;
    await command(type, fields);
    toast(redo ? "Done again." : "Undone.", {
      action: () => rewindDialog({ redo: !redo }),
      label: redo ? "Undo" : "Redo",
    });
    return;
  }
  const body = make("div");
  fill(body, found.html);
  openDialog(found.title, body);
}

export async function confirmed(button) {
  const { type, ...fields } = JSON.parse(button.dataset.command);
  dialog.close();
  await command(type, fields);
}

// Searches the log, not the page: earlier turns may not be shown.
export async function findDialog(text) {
  const { matches } = await request("GET", `/sessions/${session}/search?text=${encodeURIComponent(text)}&limit=50`);
  const kinds = { user_message: "you", answered: "answer", tool_finished: "tool" };
  const rows = matches.map((match) => {
    const when = new Date(match.at * 1000).toLocaleString();
    return make(
      "li",
      {},
      make("span", { class: "soft" }, `${kinds[match.type] || match.type.replaceAll("_", " ")}, ${when}: `),
      match.excerpt,
    );
  });
  openDialog(
    `${matches.length} found: ${text}`,
    rows.length
      ? make("ul", { class: "found" }, ...rows)
      : make("p", { class: "soft" }, "Nothing in this conversation has these words."),
  );
}

export async function helpDialog() {
  openDialog("Keys", element(await part("/keys")));
}
