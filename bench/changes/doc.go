// Package changes measures core/change on simulated traffic with a fixed seed: how many false alarms a
// quiet year of 50 pairs of an agent and a tool has, and within how many runs a seeded shift is found.
// `go run ./bench/cmd/changes -write bench/changes.md` writes the whole report, in minutes; the tests are
// its small form.
package changes
