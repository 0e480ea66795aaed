// What a player reports, one after the other: on a slow line reports keep the distances in which they were made.
((ns) => {
  "use strict";

  const TIME = { now: () => performance.now(), sleep: (ms) => new Promise((done) => { setTimeout(done, ms); }) };

  /**
   * Return `report(kind, body)`, which sends a body when those before it are answered, and promises its answer.
   *
   * The server's clock starts when it hears of a beginning. What is reported while the song plays waits as long as that
   * took: so nobody is ahead of that clock who hears the song as it is.
   */
  const line = (send, { now, sleep } = TIME) => {
    let queue = Promise.resolve();
    let late = 0; // how long the report of the beginning took
    let latest = 0; // when the latest report was made

    const deliver = async (kind, body, made) => {
      const wait = kind === "play" ? 0 : made + late - now();
      if (wait > 0) await sleep(wait);
      if (kind === "beat" && made < latest && latest + late <= now()) return null; // a later report is due, and says more
      const answer = await send(body);
      if (kind === "play") late = now() - made;
      if (kind === "pause" || kind === "ended") late = 0;
      return answer;
    };

    return (kind, body) => {
      const made = now();
      latest = made;
      const answer = queue.then(() => deliver(kind, body, made));
      queue = answer.catch(() => null);
      return answer;
    };
  };

  ns.reports = { line };
})((globalThis.musicEvals ||= {}));
