/** The API's order where none is asked for: by namespace and name. @param {any} a @param {any} b */
export function compareNames(a: any, b: any): number;
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
export function compareBy(...criteria: Criterion[]): (a: any, b: any) => number;
/**
 * One criterion of an order.
 */
export type Criterion = {
    /**
     * The field, like `spec.resource.mtu`. The documents of the list select it.
     */
    path: string;
    /**
     * Default: ASC.
     */
    direction?: "ASC" | "DESC" | undefined;
};
