// What a reader changes: switches, each with an intervention, of which several are turned together.

/** The intervention of some switches together. */
export function together(switches) {
  const interventions = switches.map(({ intervention }) => intervention);
  const ablated = interventions.flatMap((one) => one.ablated ?? []);
  return { ...Object.assign({}, ...interventions), ...(ablated.length ? { ablated } : {}) };
}

/** The switches of a model's heads among some names; the name of each is that of its button among all heads. */
export function headSwitches({ layers }, names) {
  return layers.flatMap(({ name: place, full, heads }) =>
    Array.from({ length: heads }, (_, head) => head)
      .filter((head) => names.includes(`${place}-${head}`))
      .map((head) => {
        const intervention = { ablated: [[place, head]] };
        return { name: `${place}-${head}`, label: `Use head ${full}H${head}`, on: true, intervention };
      }),
  );
}
