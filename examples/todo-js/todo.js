// A list of things to do.

class TodoList {
  constructor() {
    this.items = [];
  }

  add(text) {
    this.items.push({ text, done: false });
  }

  complete(text) {
    const item = this.items.find((item) => item.text === text);
    item.done = true;
  }

  open() {
    return this.items.filter((item) => item.done).map((item) => item.text);
  }
}

module.exports = { TodoList };
