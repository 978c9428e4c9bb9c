// Charts that tell the value under the pointer. They are drawn by the server.

export function charts() {}
