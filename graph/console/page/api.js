// The page's own client of the API: requests by POST, and subscriptions by
// graphql-transport-ws, one socket each.
"use strict";
(() => {
  // data is what the gateway wrote into the page: endpoint, version, store, examples.
  const data = JSON.parse(document.getElementById("sluice").textContent);

  // post sends a query or mutation and gives the response, whatever its status.
  async function post(payload, { headers, signal } = {}) {
    const response = await fetch(data.endpoint, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "application/graphql-response+json, application/json;q=0.9" },
      body: JSON.stringify(payload),
      signal,
    });
    const text = await response.text();
    try {
      return JSON.parse(text);
    } catch {
      throw new Error(`the gateway answered ${response.status} ${response.statusText} and no JSON: ${text.slice(0, 500)}`);
    }
  }

  // Close codes after which the same request would fail again.
  const fatal = new Set([1002, 1009, 1011, 4400, 4401, 4403, 4406, 4409, 4429, 4500]);
  const attempts = 10;

  // cursorOf finds the cursor of an event, if it selects one.
  function cursorOf(response) {
    for (const event of Object.values(response?.data ?? {})) {
      if (event?.cursor) return event.cursor;
    }
    return null;
  }

  // subscribe calls sink.next for each response, and then sink.error or
  // sink.complete once. It returns a function that stops. After a lost connection it
  // goes on from the last cursor, if the operation has a variable $after; it tells
  // sink.state "waiting" and "live".
  function subscribe(payload, sink, { headers } = {}) {
    const url = new URL(data.endpoint, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const resumes = /\$after\b/.test(payload.query);
    let socket, timer, cursor = null, received = 0, failures = 0, over = false;

    const send = (message) => socket.send(JSON.stringify(message));
    function end(tell) {
      if (over) return;
      over = true;
      clearTimeout(timer);
      if (socket.readyState <= WebSocket.OPEN) socket.close(1000);
      tell?.();
    }
    function receive(message) {
      switch (message.type) {
        case "connection_ack": {
          failures = 0;
          sink.state?.("live");
          const variables = cursor ? { ...payload.variables, after: cursor } : payload.variables;
          send({ id: "1", type: "subscribe", payload: { ...payload, variables } });
          break;
        }
        case "ping":
          send({ type: "pong" });
          break;
        case "next":
          received++;
          cursor = cursorOf(message.payload) ?? cursor;
          sink.next(message.payload);
          break;
        case "error":
          end(() => {
            sink.next({ errors: message.payload });
            sink.complete();
          });
          break;
        case "complete":
          end(() => sink.complete());
          break;
      }
    }
    function open() {
      socket = new WebSocket(url, "graphql-transport-ws");
      socket.onopen = () => send({ type: "connection_init", payload: headers });
      socket.onmessage = (event) => { if (!over) receive(JSON.parse(event.data)); };
      socket.onclose = (event) => {
        if (over) return;
        const why = `the connection was closed (${event.code}${event.reason ? `: ${event.reason}` : ""})`;
        if (fatal.has(event.code) || ++failures > attempts) return end(() => sink.error(new Error(why)));
        if (received > 0 && !(resumes && cursor)) {
          return end(() => sink.error(new Error(`${why}; with a variable $after, and the field cursor selected, the page resumes by itself`)));
        }
        sink.state?.("waiting");
        timer = setTimeout(open, Math.min(5000, 250 * 2 ** (failures - 1)));
      };
    }
    open();
    return () => {
      if (!over && socket.readyState === WebSocket.OPEN) send({ id: "1", type: "complete" });
      end();
    };
  }

  window.sluice = { data, post, subscribe };
})();
