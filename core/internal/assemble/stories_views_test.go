package assemble

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// Two families: the views of the first name responses alike, those of the second have names of their own.
var viewsOf = map[string]View{
	"tx": {Family: "fam", Rank: 3}, "net": {Family: "fam", Rank: 2, Measures: true}, "tel": {Family: "fam", Rank: 1, Measures: true},
	"roll": {Family: "own", Rank: 3, OwnNames: true}, "app": {Family: "own", Rank: 2, OwnNames: true},
	"wire": {Family: "own", Rank: 1, OwnNames: true, Measures: true}, "logs": {Family: "own", OwnNames: true, Measures: true},
}

func viewOf(format string) View { return viewsOf[format] }

// part is a text of a response, under a key that all views have.
func part(run, resp, name string, at int64) msg.Message {
	m := said(run, resp, at)
	m.Key, m.Content = resp+"/"+name, msg.Plain(name+" of "+resp)
	return m
}

func counts(run, resp string, at int64, in, out uint64, from msg.Provenance) msg.Message {
	m := usageOf(run, resp, at, msg.Complete, msg.Tokens{Input: in, Output: out, CacheRead: 2, Provenance: from})
	m.Run = run
	m.Key += run
	return m
}

// known is the request of a response.
func known(m msg.Message, request string) msg.Message {
	return as(m, func(m *msg.Message) { m.SetAttr("request_id", request) })
}

func bare(run, id string, at int64) msg.Message {
	return called(run, id, "Read", at)
}

// familyViews are a turn as the views of the first family have it, across the end of an hour: t0 is 2800 s before it.
func familyViews() map[string][]msg.Message {
	asks := func(run string, at int64) msg.Message {
		return as(user(run, at), func(m *msg.Message) {
			m.Signal, m.Key, m.Content = msg.RunStart, "prompt of "+run, msg.Plain("Trim the lamp")
		})
	}
	child := func(run string, at int64) msg.Message {
		return as(asks("k", at), func(m *msg.Message) { m.ParentRun, m.ParentCall, m.Delegation.Link = run, "task", msg.ByNativeID })
	}
	return map[string][]msg.Message{
		"tx": {
			asks("turn", 2780), part("turn", "m1", "0", 2790), in("m1", bare("turn", "c1", 2791)), counts("turn", "m1", 2792, 10, 4, msg.TranscriptPartial), result("turn", "c1", 2794),
			in("m2", delegated("turn", "task", "scout", 2798)), as(counts("turn", "m2", 2799, 20, 3, msg.TranscriptFinal), func(m *msg.Message) { m.Usage.Reasoning = 2 }), child("turn", 2801), part("k", "m3", "0", 2803), stop("k", 2804), answered("turn", "task", 2805),
			part("turn", "m4", "0", 2810), counts("turn", "m4", 2810, 9, 9, msg.TranscriptFinal), stop("turn", 2811),
		},
		"net": {
			known(asks("turn", 2781), ""), known(part("turn", "m1", "0", 2789), "q1"), signaled("turn", "m1", msg.FirstToken, 2788), known(in("m1", bare("turn", "c1", 2790)), "q1"), known(counts("turn", "m1", 2793, 10, 6, msg.Provider), "q1"),
			known(part("turn", "m2", "thought", 2797), "q2"), in("m2", delegated("turn", "task", "", 2798)), known(counts("turn", "m2", 2801, 20, 7, msg.Provider), "q2"), child("turn", 2802), known(part("k", "m3", "0", 2803), "q3"), stop("turn", 2812),
			asks("extra", 2813), part("extra", "m9", "0", 2814), counts("extra", "m9", 2815, 1, 1, msg.Provider),
		},
		"tel": {
			asks("trace", 2779), counts("trace", "q1", 2793, 10, 6, msg.Provider), as(bare("trace", "c1", 2791), func(m *msg.Message) { m.Tool.Server, m.Tool.Arguments = "lamps", msg.Plain(`{"of":1}`) }), failed(with("none", result("trace", "c1", 2795))),
			counts("trace", "q2", 2800, 20, 5, msg.Provider), counts("trace", "q3", 2803, 3, 3, msg.Provider), counts("trace", "m4", 2809, 9, 9, msg.Estimated), as(status("trace", msg.NoSignal, 2811), func(m *msg.Message) { m.Hidden = true }),
		},
	}
}

// ownViews are a session as the views of the second family have it.
func ownViews() map[string][]msg.Message {
	asks := func(run string, at int64) msg.Message {
		return as(user(run, at), func(m *msg.Message) {
			m.Signal, m.Key, m.Content = msg.RunStart, "prompt "+run, msg.Plain("Trim the lamp")
		})
	}
	rest := func(run, of string, at int64, n uint64) msg.Message {
		return as(usageOf(run, "", at, msg.Complete, msg.Tokens{Input: n, Output: n, Reasoning: 1, Provenance: msg.Provider}), func(m *msg.Message) {
			m.Key = fmt.Sprint("rest of ", of, at)
			m.SetAttr(msg.RestOf, of)
		})
	}
	item := func(m msg.Message, id string) msg.Message {
		return as(m, func(m *msg.Message) { m.SetAttr(msg.ResponseItem, id) })
	}
	return map[string][]msg.Message{
		"roll": {
			asks("turn", 10), item(part("turn", "i1", "0", 20), "i1"), in("i1", bare("turn", "c1", 21)), counts("turn", "i1", 22, 30, 3, msg.Provider), result("turn", "c1", 24),
			as(below("kid", "turn", "c2", 26), func(m *msg.Message) { m.Agent.ID = "kid" }), part("kid", "i5", "0", 27), stop("kid", 28), part("turn", "i2", "0", 30), counts("turn", "i2", 31, 40, 4, msg.Provider), stop("turn", 32),
		},
		"app": {
			asks("turn", 11), part("turn", "a1", "0", 20), in("a1", bare("turn", "c1", 21)), counts("turn", "a1", 22, 10, 1, msg.TranscriptPartial), result("turn", "c1", 23), rest("turn", "turn", 31, 100), rest("", msg.OfSession, 32, 200), stop("turn", 33), asks("late", 40), part("late", "a7", "0", 41), rest("turn", "turn", 31, 110),
		},
		"wire": {
			asks("req", 12), item(part("req", "w1", "0", 19), "i1"), in("w1", bare("req", "c1", 20)), counts("req", "w1", 21, 30, 5, msg.Provider), item(part("req", "w2", "0", 29), "i9"), counts("req", "w2", 30, 41, 4, msg.Provider),
			asks("title", 50), part("title", "w9", "0", 51), counts("title", "w9", 52, 7, 1, msg.Provider), stop("title", 53),
		},
		"logs": {
			as(status("", msg.NoSignal, 9), func(m *msg.Message) { m.Hidden = true }), asks("p", 10), counts("p", "l1", 21, 30, 3, msg.Provider), as(bare("p", "c1", 20), func(m *msg.Message) { m.Tool.Server = "lamps" }), failed(result("p", "c1", 25)), counts("p", "l2", 30, 40, 4, msg.Provider),
			as(status("p", msg.NoSignal, 31), func(m *msg.Message) {}), stop("p", 33),
		},
	}
}

// TestRowsOfViews: views of one conversation that are read one after the other, the strongest first, the weakest first, and beside one another.
func TestRowsOfViews(t *testing.T) {
	for family, views := range map[string]map[string][]msg.Message{"fam": familyViews(), "own": ownViews()} {
		order := []string{"tx", "net", "tel"}
		if family == "own" {
			order = []string{"roll", "app", "wire", "logs"}
		}
		var first *stage
		for _, way := range []string{"down", "up", "beside", "last"} {
			w := newStage(t, Settings{View: viewOf})
			w.merges = true
			w.play("views-"+family+"-"+way, func(w *stage) {
				list := slices.Clone(order)
				if way == "up" {
					slices.Reverse(list)
				}
				if way == "last" { // the one that knows the names of the others
					list = append(list[:1:1], append(slices.Clone(list[2:]), list[1])...)
				}
				for i, v := range list {
					w.on(uint64(i+1), v, "s")
				}
				for n := 0; way == "beside" && n < 20; n++ {
					for i, v := range list {
						if n < len(views[v]) {
							w.say(uint64(i+1), views[v][n])
						}
					}
				}
				for i, v := range list {
					if way != "beside" {
						w.say(uint64(i+1), views[v]...)
						w.quietly(w.commit)
					}
				}
				w.quietly(func() { w.do("finish", w.a.Finish); w.commit() })
				w.ends()
			})
			if first == nil {
				first = w
			} else if d := cmp.Diff(first.table(), w.table()); d != "" {
				t.Errorf("%s, read down and %s, differs:\n%s", family, way, d)
			}
		}
	}
}

// TestRowsOfRenamedViews: a backfill takes the rows back that were stored before there were families; a format alone in its family is not merged.
func TestRowsOfRenamedViews(t *testing.T) {
	newStage(t, Settings{View: viewOf, Renamed: true, Reconciles: func(family string) bool { return family == "fam" }}).play("renamed", func(w *stage) {
		w.on(1, "tx", "s").on(2, "roll", "s").on(3, "net", "unknown").on(4, "f", "s")
		w.each(1, familyViews()["tx"]...)
		w.each(2, ownViews()["roll"][:5]...)
		w.each(3, familyViews()["net"][:3]...)
		w.each(4, user("a", 1), stop("a", 2))
	})
}

// TestRowsOfViewsThatMove: a child that a view has is read before its parent, and moves; facts that the store does not have yet are not forgotten.
func TestRowsOfViewsThatMove(t *testing.T) {
	w := newStage(t, Settings{View: viewOf})
	w.merges = true
	w.play("views-move", func(w *stage) {
		w.on(1, "tx", "s").on(2, "tx", "s").on(3, "net", "s").on(4, "tel", "s")
		w.say(2, under("k", msg.UnknownRun, "", 0, 5), part("k", "m3", "0", 6), counts("k", "m3", 6, 3, 3, msg.TranscriptFinal), bare("k", "ck", 6), result("k", "ck", 7), stop("k", 8))
		w.commit()
		w.say(3, under("k", "turn", "task", msg.ByNativeID, 5), known(part("k", "m3", "0", 6), "q3"))
		w.commit()
		w.say(1, user("turn", 1), delegated("turn", "task", "scout", 4), linked("turn", "task", "k", msg.ByMetaFile, 0, 5))
		w.again(2, "k")
		w.commit()
		w.say(1, answered("turn", "task", 9), stop("turn", 10))
		w.commit()
		w.do("a commit that no store has", func() error { return w.a.Commit(func(string, bool, []byte) {}) })
		w.say(4, counts("trace", "q3", 6, 3, 3, msg.Provider), bare("trace", "ck", 6), stop("trace", 11))
		w.do("a commit that no store has", func() error { return w.a.Commit(func(string, bool, []byte) {}) })
		w.do("forget", func() error { return w.a.Idle(time.Unix(0, t0+1000*sec), 1) })
		w.say(1, as(user("turn2", 20), func(m *msg.Message) { m.Key = "prompt2" }), stop("turn2", 21))
		w.say(3, stop("k", 22))
		w.commit()
		w.ends()
	})
}

// TestVerdictsOfViews: of a run that another view has ended nothing is missing.
func TestVerdictsOfViews(t *testing.T) {
	newStage(t, Settings{View: viewOf}).held("views-verdicts", func(w *stage) {
		w.merges = true
		w.on(1, "tx", "ended").on(2, "net", "ended").on(3, "tx", "open").on(4, "net", "open")
		for at := uint64(1); at < 5; at += 2 {
			w.say(at+1, user("turn", 0), part("turn", "m1", "0", 1))
			w.say(at, user("turn", 0), as(status("turn", msg.ModelStart, 2), func(m *msg.Message) { m.Model = "lamp-1" }))
		}
		w.say(2, stop("turn", 3))
		w.quietly(w.commit)
		w.until(400)
		w.say(1, stop("turn", 401))
		w.say(3, stop("turn", 401))
		w.until(410)
		w.quietly(w.commit)
		w.ends()
	})
}
