// A menu below a button: items are words and what they do.

import { guarded, make } from "./api.js";

export function openMenu(button, label, items) {
  document.querySelector(".menu")?.remove();
  const menu = make("div", { class: "menu appear", role: "menu", "aria-label": label });
  for (const [words, action] of Object.entries(items)) {
    const item = make("button", { type: "button", role: "menuitem", class: words === "Delete" ? "danger" : "" }, words);
    item.addEventListener("click", () => {
      close();
      guarded(action);
    });
    menu.append(item);
  }
  const place = button.getBoundingClientRect();
  document.body.append(menu);
  menu.style.left = `${Math.min(place.left, innerWidth - menu.offsetWidth - 8)}px`;
  menu.style.top = `${Math.min(place.bottom + 2, innerHeight - menu.offsetHeight - 8)}px`;
  button.setAttribute("aria-expanded", "true");
  const close = () => {
    menu.remove();
    button.setAttribute("aria-expanded", "false");
  };
  menu.addEventListener("keydown", (event) => {
    const every = [...menu.children];
    const at = every.indexOf(document.activeElement);
    if (event.key === "Escape") {
      close();
      button.focus();
    } else if (event.key === "ArrowDown") every[(at + 1) % every.length].focus();
    else if (event.key === "ArrowUp") every[(at + every.length - 1) % every.length].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  setTimeout(() =>
    document.addEventListener("click", (event) => !menu.contains(event.target) && close(), { once: true }),
  );
  menu.firstElementChild.focus();
}
