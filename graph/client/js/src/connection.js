/** @param {any} resource @returns {string} */
export const idOfResource = (resource) => resource.id;

/** @param {any} data @returns {any} */
export const firstField = (data) => Object.keys(data ?? {}).find((key) => key !== "__typename");

/**
 * isOlder reports whether a resource of the cache is older than the one of the list. The answer to a mutation or a query can arrive after
 * the event of a later change, and replace what the event has brought. A revision is `<epoch>-<sequence>`: to programs it is opaque, but this
 * package comes with the gateway. What is no revision is not older.
 * @param {any} held
 * @param {any} listed
 */
export function isOlder(held, listed) {
  const [epoch, sequence] = numbers(held), [listedEpoch, listedSequence] = numbers(listed);
  return epoch < listedEpoch || (epoch === listedEpoch && sequence < listedSequence);
}

/** @param {any} resource @returns {number[]} NaN where there is none, which is less than nothing. */
function numbers(resource) {
  const [epoch, sequence] = String(resource?.metadata?.revision ?? "").split("-").map((text) => (text === "" ? NaN : Number(text)));
  return [epoch, sequence];
}

/**
 * A connection in a client's cache that shows a list.
 * @template T
 */
export class Connection {
  /** What the cache was given of each resource. @type {Map<string, T>} */ #given = new Map();
  /** What the cache showed of each resource that was older than the list's when it was last given again. @type {Map<string, string>} */ #older = new Map();
  /** Rows that the page has read itself, and whether the list shows as many by now. @type {Map<string, boolean>} */ #read = new Map();

  /**
   * @param {import("./live.js").LiveList<T>} list
   * @param {(resource: T) => string} idOf
   * @param {() => void} bring Brings the connection up to date.
   */
  constructor(list, idOf, bring) {
    this.list = list;
    this.idOf = idOf;
    this.bring = bring;
    /** How often the cache was given a resource again. */
    this.repeats = 0;
    /** By how many resources the list grows at least, so that those that are created have room. */
    this.step = list.first;
  }

  /** Whether the list has something to show, and goes on. */
  get live() {
    return ["live", "behind"].includes(this.list.getSnapshot().status);
  }

  /**
   * rows returns what the connection has to show: the list, and behind it the rows that the page itself has read with the next page,
   * until the list shows as many.
   * @param {string[]} present The ids of the rows that the connection has.
   * @returns {Array<{id: string, resource?: T}>} Those that the page has read come without their resource.
   */
  rows(present) {
    const { resources, hasNextPage } = this.list.getSnapshot();
    const rows = resources.map((resource) => ({ id: this.idOf(resource), resource }));
    const listed = new Set(rows.map(({ id }) => id));
    // What the list showed before and does not show any more is gone, or behind its end.
    const own = hasNextPage ? present.filter((id) => !listed.has(id) && !this.#given.has(id)) : [];
    for (const id of this.#read.keys()) if (!own.includes(id)) this.#read.delete(id);
    const fresh = own.filter((id) => !this.#read.has(id));
    if (fresh.length > 0) this.#grow(fresh, present.length);
    return [...rows, ...own.filter((id) => this.#read.get(id) === false).map((id) => ({ id }))];
  }

  /** @param {string[]} fresh @param {number} size */
  async #grow(fresh, size) {
    for (const id of fresh) this.#read.set(id, false);
    const missing = size - this.list.first;
    await this.list.more(missing > 0 ? Math.max(missing, this.step) : 0);
    for (const id of fresh) if (this.#read.has(id)) this.#read.set(id, true);
    this.bring();
  }

  /**
   * give reports whether the cache was not given the resource before. What the cache has of it then may be newer than what the list
   * has, after a mutation.
   * @param {string} id
   * @param {T} resource
   */
  give(id, resource) {
    if (this.#given.get(id) === resource) return false;
    this.#given.set(id, resource);
    return true;
  }

  /**
   * giveAgain reports whether the cache needs a resource again that it was given before: what it shows is older. If it goes on showing
   * the same, an optimistic change of the page covers the resource, and the cache has it below.
   * @param {string} id
   * @param {any} shown
   * @param {T} resource
   */
  giveAgain(id, shown, resource) {
    if (!isOlder(shown, resource)) {
      this.#older.delete(id);
      return false;
    }
    const text = JSON.stringify([shown, resource]);
    if (this.#older.get(id) === text) return false;
    this.#older.set(id, text);
    this.repeats++;
    return true;
  }

  /**
   * keep forgets all resources but those of these rows.
   * @param {Array<{id: string}>} rows
   */
  keep(rows) {
    const ids = new Set(rows.map(({ id }) => id));
    for (const known of [this.#given, this.#older]) {
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
    }
  }
}

/**
 * connectionData returns what a query's data has to be, so that its connection shows the list; undefined if it does.
 * @template T
 * @param {Connection<T>} connection
 * @param {any} data What the cache has.
 * @param {string | undefined} field The field of the connection. undefined: the first one.
 * @param {{optimistic: boolean}} about Whether the data has optimistic changes of the page in it. They are not given back to the cache.
 */
export function connectionData(connection, data, field, { optimistic }) {
  const name = field ?? firstField(data);
  const held = name && data?.[name];
  if (!held) return undefined;
  const { list } = connection;
  /** @type {any[]} */
  const nodes = held.nodes ?? held.edges.map((/** @type {any} */ edge) => edge.node);
  const known = new Map(nodes.map((node, at) => [connection.idOf(node), { node, edge: held.edges?.[at] }]));
  const rows = connection.rows([...known.keys()]);
  connection.keep(rows);
  const edgeType = held.__typename?.replace(/Connection$/, "Edge");
  let changed = rows.length !== nodes.length || rows.some(({ id }, at) => id !== connection.idOf(nodes[at]));
  const next = rows.map(({ id, resource }) => {
    const had = known.get(id);
    const late = had !== undefined && resource !== undefined && (optimistic ? connection.giveAgain(id, had.node, resource) : isOlder(had.node, resource));
    const given = resource !== undefined && (connection.give(id, resource) || late);
    changed ||= given;
    const node = resource !== undefined && (given || optimistic || !had) ? resource : had?.node;
    return { node, edge: { ...(had?.edge ?? { __typename: edgeType }), cursor: list.cursorOf(id) ?? had?.edge?.cursor ?? "", node } };
  });
  const { hasNextPage, endCursor } = list.getSnapshot();
  // Behind rows that the page has read itself its own place is the right one.
  const ended = rows.every(({ resource }) => resource !== undefined);
  const pageInfo = held.pageInfo && ended ? { ...held.pageInfo, hasNextPage, endCursor: endCursor ?? held.pageInfo.endCursor } : held.pageInfo;
  changed ||= pageInfo?.hasNextPage !== held.pageInfo?.hasNextPage || pageInfo?.endCursor !== held.pageInfo?.endCursor;
  if (!changed) return undefined;
  return {
    ...data,
    [name]: {
      ...held,
      ...(held.edges && { edges: next.map(({ edge }) => edge) }),
      ...(held.nodes && { nodes: next.map(({ node }) => node) }),
      ...(pageInfo && { pageInfo }),
    },
  };
}
