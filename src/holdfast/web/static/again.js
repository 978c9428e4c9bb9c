// A page that could not be shown, because the database did not answer: asked for until it can be.

const EVERY = 3000;

function again() {
  setTimeout(async () => {
    try {
      const answer = document.hidden ? null : await fetch(location.href, { cache: "no-store" });
      if (answer && answer.status !== 503) return location.reload();
    } catch {
      // The server itself is away.
    }
    again();
  }, EVERY);
}

again();
