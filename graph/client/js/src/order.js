/** @param {string} a @param {string} b */
function byCodePoints(a, b) {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  // Half a pair is compared as the whole.
  if (at > 0 && /[\ud800-\udbff]/.test(a[at - 1])) at--;
  return (a.codePointAt(at) ?? -1) - (b.codePointAt(at) ?? -1);
}

const instant = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/**
 * compareValues orders two values of a field as the API does upwards: none comes first, then false, numbers from the smallest, texts by
 * their characters, times from the earliest.
 * @param {any} a @param {any} b
 * @returns {number}
 */
function compareValues(a, b) {
  if (a == null || b == null) return (a == null ? 0 : 1) - (b == null ? 0 : 1);
  if (typeof a !== "string" || typeof b !== "string") return Number(a) - Number(b);
  // Without the Z a whole second comes before its fractions.
  if (instant.test(a) && instant.test(b)) return byCodePoints(a.slice(0, -1), b.slice(0, -1));
  return byCodePoints(a, b);
}

/** @param {any} resource @param {string[]} path */
const valueAt = (resource, path) => path.reduce((value, name) => value?.[name], resource);

/** The API's order where none is asked for: by namespace and name. @param {any} a @param {any} b */
export function compareNames(a, b) {
  const namespaces = compareValues(a.metadata?.namespace ?? "", b.metadata?.namespace ?? "");
  return namespaces || compareValues(a.metadata?.name ?? "", b.metadata?.name ?? "");
}

/**
 * One criterion of an order.
 * @typedef {object} Criterion
 * @property {string} path The field, like `spec.resource.mtu`. The documents of the list select it.
 * @property {"ASC" | "DESC"} [direction] Default: ASC.
 */

/**
 * compareBy is the order of `orderBy` in the API, for `compare` of a live list: `orderBy: [{field: SPEC_RESOURCE_MTU, direction: DESC}]` is
 * `compareBy({ path: "spec.resource.mtu", direction: "DESC" })`.
 * @param {...Criterion} criteria The most important first.
 * @returns {(a: any, b: any) => number}
 */
export function compareBy(...criteria) {
  const parsed = criteria.map(({ path, direction }) => ({ path: path.split("."), sign: direction === "DESC" ? -1 : 1 }));
  return (a, b) => {
    for (const { path, sign } of parsed) {
      const order = sign * compareValues(valueAt(a, path), valueAt(b, path));
      if (order) return order;
    }
    return 0;
  };
}
