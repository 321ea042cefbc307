/** An object whose values are made when they are first read. `make`: of a name. */
export function whenRead(make) {
  return new Proxy({}, { get: (made, name) => (made[name] ??= make(name)) });
}
