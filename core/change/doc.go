// Package change finds when an agent, a tool or a model changed: runs with their times, values and
// versions in, change points out. It is pure: no clock, no store.
//
// # Test
//
// A series has one value for each run of an agent: how long it took, its tokens, its calls, whether
// it failed; for a tool or a model the median of its calls in the run, or the share that failed.
// The runs since a point are compared with those before it by the rank-sum test of Wilcoxon (1945)
// and Mann and Whitney (1947), with midranks for ties. Runs of one session resemble each other, so
// the variance is that of the sums of ranks by session, as of Rosner, Glynn and Lee (2003,
// Biometrics 59), and the p-value is that of random permutations of whole sessions (Phipson and
// Smyth 2010), ended as Besag and Clifford (1991) do. It assumes that sessions are
// exchangeable while nothing changes, and nothing of how values are distributed.
//
// # When it is tested
//
// Looks are at fixed places of the data, so asking often finds the same and nothing else:
//
//   - release: when a version component (client, model, effort, prompt, tools) of that value has
//     12, 25, 50, 100 and 200 runs, they are compared with up to 400 runs before the first of them.
//   - drift: at the end of each UTC day that has runs, the last 12, 25, 50, 100 and 200 runs are
//     compared with up to 400 runs before them.
//
// A change restarts its series: later looks see only the runs since.
//
// # False alarms
//
// The expected number of false alarms in 30 days, over all series together, is at most Budget
// (the per-family error rate: Spjøtvoll 1972). Three quarters of it are for releases and one for drift, each
// split among the numbers of runs with the weights 0.1, 0.2, 0.4, 0.2, 0.1 and divided by the looks of that kind
// and number in 30 days (weighted Bonferroni: Genovese, Roeder and Wasserman 2006). This holds for any
// dependence between looks, which is why the real number is lower. bench/changes.md has the measured one.
//
// # Size
//
// The shift is the estimate of Hodges and Lehmann (1963): the median ratio of a value after to one before,
// with its 95 % interval. Changes below MinShift are not reported, however certain.
package change
