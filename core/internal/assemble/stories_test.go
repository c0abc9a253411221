package assemble

import (
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// The stories of this file are held to testdata, whole: each file was read and approved. -update writes them.

// as changes a message.
func as(m msg.Message, change func(m *msg.Message)) msg.Message {
	m.Attrs = append([]msg.Attr(nil), m.Attrs...)
	change(&m)
	return m
}

// status is a signal of a run.
func status(run string, s msg.Signal, at int64, attrs ...string) msg.Message {
	m := msg.Message{Kind: msg.Status, Run: run, Time: at, Signal: s, Key: fmt.Sprint(s, at)}
	for i := 0; i < len(attrs); i += 2 {
		m.SetAttr(attrs[i], attrs[i+1])
	}
	return m
}

// signaled is a signal of a response.
func signaled(run, resp string, s msg.Signal, at int64, attrs ...string) msg.Message {
	m := status(run, s, at, attrs...)
	m.ResponseID, m.Key = resp, m.Key+resp
	return m
}

func seconds(at float64) string { return fmt.Sprint(t0 + int64(at*float64(sec))) }

// linked is a record beside a transcript that names the child of a call.
func linked(run, call, child string, by msg.LinkMethod, confidence uint8, at int64) msg.Message {
	return msg.Message{Kind: msg.Status, Run: run, Time: at, Signal: msg.Link, Key: fmt.Sprint("link", call, child, by), Tool: msg.Tool{CallID: call}, Delegation: msg.Delegate{ChildRun: child, Link: by, Confidence: confidence}}
}

// under is the first message of a child.
func under(run, parent, call string, by msg.LinkMethod, at int64) msg.Message {
	m := below(run, parent, call, at)
	m.Delegation.Link = by
	return m
}

// each commits after each message.
func (w *stage) each(stream uint64, list ...msg.Message) {
	w.t.Helper()
	for _, m := range list {
		w.say(stream, m)
		w.commit()
	}
}

func TestRowsOfATurn(t *testing.T) {
	newStage(t, Settings{Host: "lighthouse"}).play("turn", func(w *stage) { w.on(1, "f", "s").each(1, aTurn()...) })
}

// TestRowsOfResponses: responses with and without a name, that are repeated, whose end has a time, whose first token precedes everything else.
func TestRowsOfResponses(t *testing.T) {
	newStage(t, Settings{}).play("responses", func(w *stage) {
		w.on(1, "f", "s")
		answer := func(resp string, at int64, model, provider, reason string) msg.Message {
			m := said("a", resp, at)
			m.Key, m.Model, m.Provider, m.FinishReason = fmt.Sprint(resp, "/", at), model, provider, reason
			return m
		}
		w.each(1, user("a", 1), signaled("a", "", msg.FirstToken, 2), answer("", 3, "", "", ""), user("a", 4), signaled("a", "", msg.FirstToken, 5), user("a", 6))
		w.each(1, status("a", msg.ModelStart, 7, msg.ParamTopP, "0.5", msg.SessionFrom, "file"), answer("r1", 8, "lamp-1", "acme", ""), answer("r2", 9, "lamp-2", "", "length"),
			signaled("a", "r2", msg.FirstToken, 10), signaled("a", "r2", msg.FirstToken, 11), signaled("a", "r2", msg.ModelEnd, 12, msg.ResponseStart, seconds(8.5)), answer("r2", 14, "other", "other", "stop"))
		w.each(1, usageOf("a", "r2", 15, msg.Complete, msg.Tokens{Input: 5, Output: 1, Provenance: msg.Provider}), answer("r1", 16, "", "", ""), signaled("a", "r9", msg.ModelEnd, 17), signaled("a", "r3", msg.ModelEnd, 19, msg.ResponseStart, seconds(17)),
			answer("r2", 20, "", "", ""), signaled("a", "r2", msg.ModelEnd, 21), answer("r3", 22, "", "", ""))
		bad := as(answer("r4", 23, "", "", "refusal"), func(m *msg.Message) { m.IsError, m.Tool.ErrorType = true, "filtered" })
		w.each(1, bad, signaled("a", "r5", msg.FirstToken, 24), answer("r6", 25, "", "", ""), answer("r5", 26, "", "", ""))
		w.each(1, as(answer("r5", 27, "", "", "max"), func(m *msg.Message) { m.SetAttr(msg.FinishReasonOf, "run") }), as(answer("r7", 28, "", "", ""), func(m *msg.Message) { m.SetAttr("reused_id", "r1") }))
		end := as(stop("a", 30), func(m *msg.Message) { m.ResponseID, m.FinishReason, m.Model = "r7", "end", "lamp-9" })
		end.SetAttr(msg.ModelOf, "run")
		w.each(1, end)
		// The next turn asks for the model of the last one until it asks for another.
		w.each(1, user("b", 40), signaled("b", "q0", msg.ModelEnd, 41, msg.ResponseStart, seconds(40.5)), as(status("b", msg.NoSignal, 42), func(m *msg.Message) { m.Model, m.ResponseID = "lamp-3", "q0" }))
		w.each(1, as(status("b", msg.NoSignal, 43), func(m *msg.Message) { m.Model = "lamp-4" }), as(msg.Message{Kind: msg.Error, Run: "b", Time: 44, Content: msg.Plain("No oil")}, func(m *msg.Message) { m.Model = "lamp-5" }), user("c", 50))
	})
}

// TestRowsOfTokens: counts that come in parts, in any order, again, and as a total.
func TestRowsOfTokens(t *testing.T) {
	newStage(t, Settings{}).play("tokens", func(w *stage) {
		w.on(1, "f", "s")
		count := func(resp string, at int64, c msg.Completeness, n uint64) msg.Message {
			m := usageOf("a", resp, at, c, msg.Tokens{Input: n, Output: 2 * n, CacheRead: 3 * n, CacheWrite: 4 * n, Reasoning: 5 * n, CacheWrite1h: 6 * n, Provenance: msg.Provider})
			m.Model = "m"
			return m
		}
		w.each(1, user("a", 1), count("r1", 2, msg.Partial, 1), said("a", "r2", 3), count("r2", 4, msg.Partial, 10), count("r1", 5, msg.Partial, 2))
		w.each(1, asks("r1", "c1", 6), count("r1", 7, msg.Complete, 3), count("r2", 8, msg.Complete, 11), count("r1", 9, msg.Complete, 3), returned("c1", 10, 30), count("r2", 10, msg.Complete, 12))
		w.each(1, asks("r3", "c2", 11), asks("r3", "c3", 11), count("r3", 12, msg.Complete, 100), returned("c2", 13, 10), returned("c3", 14, 50), said("a", "r4", 15), as(count("r4", 16, msg.Complete, 900), func(m *msg.Message) { m.Usage.Provenance = msg.TranscriptFinal }))
		w.each(1, count("", 17, msg.Summary, 1000), as(count("", 18, msg.Complete, 7), func(m *msg.Message) { m.Key = "all" }), stop("a", 19))
		w.each(1, as(count("", 30, msg.Summary, 50), func(m *msg.Message) { m.Run, m.Key = "b", "total" }), as(count("", 31, msg.Summary, 51), func(m *msg.Message) { m.Run, m.Key = "b", "total" }))
	})
}

// TestRowsOfCalls: calls that are repeated, named, measured, without a result, with a result in parts or before them; delegations whose child becomes known late or twice.
func TestRowsOfCalls(t *testing.T) {
	newStage(t, Settings{}).play("calls", func(w *stage) {
		w.on(1, "f", "s")
		call := func(id string, at int64) msg.Message { return in("r1", called("a", id, "wick", at)) }
		w.each(1, linked("", "d1", "x", msg.ByMetaFile, 70, 0), linked("", "d1", "x", msg.ByMetaFile, 70, 0), user("a", 1), as(result("a", "c1", 9), func(m *msg.Message) { m.Tool.Duration = 3 * sec }), delegated("a", "d1", "scout-1", 2), call("c1", 3))
		// A result in parts, and one that is measured.
		part := as(result("a", "c2", 5), func(m *msg.Message) { m.Complete, m.Content = msg.Partial, msg.Plain("half") })
		w.each(1, call("c2", 4), part, as(part, func(m *msg.Message) {
			m.Time, m.Complete, m.Tool.Name, m.Tool.Duration = 8, msg.Complete, "wick", 1500*sec/1000
		}))
		// The same call again, after its end: its arguments, its server, its name.
		w.each(1, as(call("c2", 6), func(m *msg.Message) {
			m.Tool.Server, m.Model, m.Tool.Arguments = "lamps", "lamp-1", msg.Plain(`{"of":1}`)
		}), result("a", "c2", 7), call("c2", 4))
		// An id of the protocol that is read late.
		unknown := func(m msg.Message, id string, c msg.Completeness) msg.Message {
			m.Tool.ProtocolID, m.Complete = id, c
			return m
		}
		w.each(1, unknown(call("t1", 10), msg.UnknownID, msg.Summary), unknown(call("t1", 10), "p1", msg.Summary), unknown(call("t1", 10), "p1", msg.Complete), unknown(call("t1", 10), "p2", msg.Complete), unknown(result("a", "t1", 12), "p1", msg.Complete), unknown(result("a", "t1", 12), "p1", msg.Complete))
		w.each(1, unknown(call("t2", 13), msg.UnknownID, msg.Summary), unknown(result("a", "t2", 14), msg.UnknownID, msg.Summary), unknown(result("a", "t2", 14), "p3", msg.Complete), unknown(call("t2", 13), "p4", msg.Complete), unknown(result("a", "t9", 14), "p9", msg.Complete), linked("a", "t2", "t", msg.ByMetaFile, 50, 14))
		w.each(1, unknown(call("t3", 14), msg.UnknownID, msg.Summary), unknown(result("a", "t3", 14), "p5", msg.Complete), unknown(call("t4", 14), "p6", msg.Complete), unknown(result("a", "t4", 14), "p7", msg.Complete), unknown(delegated("a", "t5", "owl", 14), msg.UnknownID, msg.Summary), unknown(delegated("a", "t5", "owl", 14), "p8", msg.Complete))
		// The agent of a delegation, by its id and its name; a child that is stated twice, and one that is stated better.
		w.each(1, delegated("a", "d2", "scout-1", 15), answered("a", "d1", 16), as(said("x", "q1", 17), func(m *msg.Message) { m.ParentRun, m.Agent = "a", msg.Agent{ID: "scout-1", Name: "Scout"} }), as(said("x", "q1", 18), func(m *msg.Message) { m.Agent = msg.Agent{ID: "scout-1"} }),
			delegated("a", "d3", "scout-1", 18), linked("a", "d2", "y", msg.ByPrompt, 40, 19), linked("a", "d2", "y", msg.ByNativeID, 0, 20), linked("a", "d2", "z", msg.ByNativeID, 0, 20), linked("a", "d1", "x", msg.ByNativeID, 0, 21), linked("a", "c1", "v", msg.ByNativeID, 0, 21), linked("a", "", "v", msg.ByNativeID, 0, 21))
		result3 := as(answered("a", "d3", 24), func(m *msg.Message) {
			m.Delegation = msg.Delegate{ChildRun: "w", Link: msg.ByNativeID, To: "Pilot", ToID: "pilot-1"}
		})
		w.each(1, under("y", "a", "d2", msg.ByNativeID, 21), stop("y", 22), answered("a", "d2", 23), result3, answered("a", "d9", 25), as(answered("a", "d8", 25), func(m *msg.Message) { m.Delegation = msg.Delegate{ChildRun: "u", Link: msg.ByMetaFile} }), delegated("a", "d8", "", 25))
		// In the background; its run goes on behind the call.
		async := as(delegated("a", "d4", "owl", 26), func(m *msg.Message) {
			m.Delegation.Async, m.Delegation.ChildRun, m.Delegation.Link = true, "o", msg.ByNativeID
		})
		w.each(1, async, under("o", "a", "d4", msg.ByNativeID, 27), answered("a", "d4", 28), stop("o", 40), async, answered("a", "d4", 28), as(linked("a", "d8", "", msg.NoLink, 0, 41), func(m *msg.Message) { m.Delegation.Async, m.Delegation.CorrelationID = true, "th" }))
		// Failures of a tool, one after the other; a result of a person's decision; internal ones count nothing.
		w.each(1, call("f1", 50), failed(with("No oil", result("a", "f1", 51))), call("f2", 52), failed(as(result("a", "f2", 53), func(m *msg.Message) { m.Tool.ErrorType = "timeout" })), call("f3", 54), failed(as(result("a", "f3", 55), func(m *msg.Message) { m.Tool.ErrorType = "denied" })), call("f4", 56), result("a", "f4", 57), call("f5", 58))
		w.each(1, as(call("i1", 60), func(m *msg.Message) { m.Tool.Internal, m.Tool.Name = true, "think" }), result("a", "i1", 61), call("l1", 62), stop("a", 63), result("a", "l1", 70))
	})
}

// TestRowsOfRuns: how runs begin, wait and end; who is in them; and which facts they hand to the next.
func TestRowsOfRuns(t *testing.T) {
	newStage(t, Settings{Host: "lighthouse"}).play("runs", func(w *stage) {
		w.on(1, "f", "s").on(2, "f", "s")
		history := as(user("", 0), func(m *msg.Message) { m.Key = "history"; m.SetAttr("type", msg.History) })
		w.each(1, history, as(status("", msg.NoSignal, 0), func(m *msg.Message) { m.Agent = msg.Agent{Name: "heron", Kind: msg.KindTeam} }))
		keeper := func(m *msg.Message) {
			m.Agent, m.Client, m.Provider = msg.Agent{ID: "k1", Name: "k1", Kind: msg.KindAgent}, msg.Client{Host: "tower", Branch: "main"}, "acme"
		}
		w.each(1, user("a", 1), history, as(said("a", "r1", 2), keeper), as(said("a", "r1", 3), func(m *msg.Message) {
			m.Agent, m.Provider, m.Client = msg.Agent{ID: "k2", Name: "Keeper", Kind: msg.KindTeam}, "other", msg.Client{Host: "quay", User: "ada"}
		}))
		w.each(1, status("a", msg.RunPause, 4, msg.AttrWaitsFor, "harbour"), status("a", msg.RunResume, 5, msg.AttrWaitsFor, "harbour"), status("a", msg.RunPause, 5, msg.AttrWaitsFor, msg.ForPerson), status("a", msg.WaitEnd, 6), status("a", msg.Retry, 7), status("a", msg.Compaction, 7))
		w.each(1, as(msg.Message{Kind: msg.Error, Run: "a", Time: 8, Content: msg.Raw([]byte(strings.Repeat("fog ", 500)))}, func(m *msg.Message) { m.SetAttr("error_type", "weather") }), as(stop("a", 9), func(m *msg.Message) { m.IsError, m.FinishReason = true, "failed" }), stop("a", 10))
		for i, end := range []struct {
			failed bool
			reason string
			whole  msg.Completeness
		}{{false, "cancelled", 0}, {true, "interrupted", 0}, {false, "interrupted", 0}, {true, "", 0}, {false, "done", msg.Summary}} {
			run, at := fmt.Sprint("e", i), int64(20+10*i)
			w.each(1, as(user(run, at), func(m *msg.Message) { m.Agent = msg.Agent{ID: "ada", Name: "Ada", Kind: msg.KindHuman} }), said(run, "q"+run, at+5), as(stop(run, at+3), func(m *msg.Message) {
				m.IsError, m.FinishReason, m.Complete, m.Content = end.failed, end.reason, max(end.whole, msg.Partial), msg.Escaped([]byte(`no \"oil\"`))
				if end.whole == 0 {
					m.Complete = msg.Complete
				}
			}))
		}
		// A form with less detail, of a run that the full form has ended; and of one that it has not.
		rough := func(m msg.Message) msg.Message { m.Complete, m.Key = msg.Summary, "rough"+m.Key; return m }
		w.each(1, rough(said("a", "r8", 12)), rough(result("a", "c", 12)), rough(tokens("a", "r8", 13, 9)), rough(stop("a", 30)), rough(said("e4", "r9", 70)))
		// A model that was silent; one that waited for a call, and one that waited for a person, were not.
		w.each(1, user("p", 100), said("p", "s1", 170), called("p", "pc", "Read", 171), said("p", "s2", 300), result("p", "pc", 301), status("p", msg.RunPause, 302), said("p", "s3", 400), user("p", 470), said("p", "s4", 529), said("p", "s5", 589))
		// An agent that the session names; a workflow; a stream beside.
		w.each(2, as(status("", msg.NoSignal, 600), func(m *msg.Message) { m.Agent = msg.Agent{Name: "heron", Kind: msg.KindAgent} }))
		w.each(2, user("z", 601), as(said("z", "", 602), func(m *msg.Message) { m.Agent.Kind = msg.KindWorkflow }), as(said("z", "", 603), func(m *msg.Message) { m.Model = "lamp-1" }), as(called("z", "zi", "step", 604), func(m *msg.Message) { m.Tool.Internal = true }), user("z2", 610))
		w.closed(2, "z2")
		w.commit()
		w.do("finish", w.a.Finish)
		w.commit()
		w.each(1, said("p", "s6", 700), stop("p", 701))
	})
}

// TestRowsOfHistory: the first times of a run that its protocol states come late.
func TestRowsOfHistory(t *testing.T) {
	newStage(t, Settings{}).play("history", func(w *stage) {
		w.on(1, "f", "s").on(2, "f", "s2")
		guess := func(m msg.Message) msg.Message { m.Precision = msg.Inferred; return m }
		dated := func(m msg.Message) msg.Message { m.Precision = msg.Seconds; return m }
		w.each(1, guess(user("a", 3600)), guess(called("a", "c", "look", 3601)), guess(said("a", "r1", 3602)), signaled("a", "r1", msg.FirstToken, 3602))
		w.each(1, dated(said("a", "r1", 10)), dated(result("a", "c", 12)), dated(stop("a", 13)))
		w.each(2, guess(user("b", 30)), guess(called("b", "c2", "look", 31)), dated(said("b", "r2", 27)), guess(result("b", "c2", 40)), guess(stop("b", 41)))
		w.each(2, guess(user("c", 50)), guess(said("c", "r3", 51)))
		w.until(10000)
		w.commit()
		w.each(2, dated(said("c", "r3", 20)), dated(stop("c", 21)))
	})
}

// TestRowsOfOrphans: children that are read before their parents, and theirs, by each evidence; and streams that are decoded again.
func TestRowsOfOrphans(t *testing.T) {
	newStage(t, Settings{}).play("orphans", func(w *stage) {
		w.on(1, "f", "s").on(2, "f", "s").on(3, "f", "s").on(4, "f", "s")
		w.each(2, under("x", msg.UnknownRun, "", 0, 3), called("x", "cx", "Read", 4), result("x", "cx", 5))
		w.each(3, under("y", "x", "", 0, 6), said("y", "ry", 7), under("z", "", "dz", msg.ByMetaFile, 8), said("z", "rz", 9))
		w.do("is it awaited?", func() error {
			for at, run := range map[uint64]string{1: "a", 2: "x", 3: "y"} {
				is, err := w.a.Awaits(at, []RunRef{{"default", "f", "s", run}})
				if err != nil {
					return err
				}
				w.note("stream %d: %t", at, is)
			}
			return nil
		})
		w.each(1, user("a", 0), delegated("a", "d1", "scout", 1), as(delegated("a", "dz", "owl", 2), func(m *msg.Message) {
			m.Delegation.ChildRun, m.Delegation.Link, m.Delegation.Confidence = "z", msg.ByPrompt, 30
		}))
		w.again(3, "z")
		w.commit()
		w.each(1, linked("a", "d1", "x", msg.ByMetaFile, 0, 2))
		w.again(2, "x")
		w.again(3, "y")
		w.commit()
		w.each(1, answered("a", "d1", 20), linked("a", "d1", "x", msg.ByNativeID, 0, 21), answered("a", "dz", 22))
		// One that nothing but a message of its own places, later; a child of a run in its place.
		w.each(4, under("v", msg.UnknownRun, "", 0, 30), said("v", "rv", 31), as(said("v", "rv", 32), func(m *msg.Message) { m.ParentCall, m.Delegation.Link, m.Delegation.Confidence = "dv", msg.ByOrder, 20 }), under("v2", "v", "", 0, 33))
		w.each(1, delegated("a", "dv", "", 29), as(delegated("a", "dv", "wren", 29), func(m *msg.Message) {}))
		w.again(4, "v")
		w.again(4, "v2")
		w.each(1, delegated("v", "dw", "finch", 40), under("w1", "v", "", 0, 41), linked("v", "dw", "w1", msg.ByMetaFile, 0, 42), stop("w1", 43), answered("v", "dw", 44), stop("v", 45), stop("x", 46), stop("a", 47))
		w.do("finish", w.a.Finish)
		w.commit()
	})
}

// TestRowsOfInferredCalls: a delegation that a decoder inferred from the child yields to one that another form has.
func TestRowsOfInferredCalls(t *testing.T) {
	newStage(t, Settings{}).play("inferred", func(w *stage) {
		w.on(1, "f", "s").on(2, "f", "s")
		w.each(1, user("a", 0), inferred(msg.Delegation, "a", "x", 1), below("x", "a", msg.InferredCall("x"), 1), inferred(msg.DelegationResult, "a", "x", 4))
		w.each(1, as(delegated("a", "d", "scout", 5), func(m *msg.Message) { m.Delegation.ChildRun, m.Delegation.Link = "y", msg.ByNativeID }), inferred(msg.Delegation, "a", "y", 6), below("y", "a", msg.InferredCall("y"), 6), inferred(msg.DelegationResult, "a", "y", 7), answered("a", "d", 8))
		w.each(2, inferred(msg.Delegation, "a", "y", 6), below("y", "a", msg.InferredCall("y"), 6), below("x", "a", msg.InferredCall("x"), 1), inferred(msg.Delegation, "a", "x", 1), as(inferred(msg.ToolCall, "a", "y", 9), func(m *msg.Message) {}), stop("a", 10))
	})
}

// TestRowsOfFlushes: open messages make provisional rows, which the next frame of their stream replaces or takes back.
func TestRowsOfFlushes(t *testing.T) {
	newStage(t, Settings{}).play("flushes", func(w *stage) {
		w.on(1, "f", "s").on(2, "f", "s").on(3, "f", "s")
		open := func(m msg.Message) msg.Message { m.Complete = 0; return m }
		w.each(1, user("a", 1), delegated("a", "d", "scout", 2), called("a", "k", "Read", 2))
		w.flush(1, open(said("a", "r1", 3)), open(called("a", "c", "look", 4)), open(under("b", "a", "d", msg.ByNativeID, 4)), open(called("b", "cb", "peek", 5)))
		w.commit()
		w.flush(1, open(said("a", "r1", 5)), open(result("a", "k", 6)))
		w.commit()
		w.each(1, said("a", "r1", 7), called("a", "c", "look", 8), result("a", "c", 9))
		w.flush(1, open(tokens("a", "r1", 10, 5)), open(said("b2", "q", 10)))
		w.commit()
		w.each(2, said("a", "r2", 11))
		w.flush(1, open(said("n", "rn", 12)))
		w.commit()
		w.closed(1, "n")
		w.commit()
		w.each(2, user("m", 20), said("m", "rm", 21))
		w.flush(3, open(said("m", "ro", 22)), open(called("m", "co", "look", 23)))
		w.commit()
		w.gone[3] = true
		w.each(2, said("m", "rm", 24), result("a", "k", 25), stop("m", 26))
		w.flush(2, open(user("o", 30)), open(said("o", "r3", 31)))
		w.commit()
		w.until(30000)
		w.commit()
		w.each(2, said("m", "rp", 40), stop("m", 41))
		// Silence ends a run that is provisional; the stream goes on with another.
		w.each(2, user("o2", 42))
		w.flush(2, open(said("o2", "r4", 43)))
		w.until(60000)
		w.commit()
		w.each(2, said("m", "rq", 44))
		// A child that is provisional, and that moves below its call.
		w.flush(3, open(under("y", msg.UnknownRun, "", 0, 50)), open(said("y", "ry", 51)))
		w.commit()
		w.each(1, user("z", 48), delegated("z", "dy", "scout", 49), linked("z", "dy", "y", msg.ByMetaFile, 0, 50))
		w.each(3, under("y", msg.UnknownRun, "", 0, 50), said("y", "ry", 52))
		w.flush(3, open(called("y", "cy", "look", 53)), open(under("v", "y", "cv", msg.ByNativeID, 54)))
		w.commit()
		w.each(3, called("y", "cz", "look", 55), stop("y", 56))
		// Frames of another session are between two flushes; and the stream of one of two provisional runs ends.
		w.each(1, user("f1", 70))
		w.flush(1, open(said("f1", "rf", 71)), open(called("f1", "cf", "look", 72)))
		w.commit()
		w.each(1, as(user("e", 73), func(m *msg.Message) { m.Session = "elsewhere" }))
		w.flush(1, open(said("f1", "rf", 74)))
		w.commit()
		w.each(1, stop("f1", 75))
		w.flush(2, open(said("g1", "rg", 80)))
		w.flush(1, open(said("h1", "rh", 81)))
		w.commit()
		w.closed(1, "h1")
		w.commit()
		w.each(2, said("g2", "rg2", 82))
		w.do("finish", w.a.Finish)
		w.commit()
	})
}
