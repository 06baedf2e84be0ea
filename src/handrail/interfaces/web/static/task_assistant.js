export const clicks = {};
export const submits = {};
export function start() {}
