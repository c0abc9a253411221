package assemble

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestRowsOfSpawnedSessions: calls that run agents with sessions of their own, by id and by prompt, read in an order that moves runs, and the
// runs below them, from trace to trace; a stream that cannot be decoded again, until it can be.
func TestRowsOfSpawnedSessions(t *testing.T) {
	newStage(t, Settings{}).play("spawned", func(w *stage) {
		w.on(1, "claude-code", "caller").on(2, "codex", "child").on(3, "legion", "grandchild").on(4, "codex", "lost").on(5, "claude-code", "other").on(6, "codex", "script")
		named := func(m msg.Message) msg.Message { m.Agent.ID = "codex-1"; return m }
		// From the leaves on: the grandchild, the child with its next turn, the caller.
		w.each(3, gets("g", "codex", "count the boats", 4), said("g", "rg", 5), called("g", "cg", "Grep", 5))
		child := hired("x", "thread 1", "look after it", 2)
		w.each(2, child[0], named(child[1]), called("x", "cx", "shell", 3), sends("x", "dx", "wren", "count the boats", 3)[0], sends("x", "dx", "wren", "count the boats", 3)[1], result("x", "cx", 6))
		w.again(3, "g")
		w.commit()
		w.each(2, user("x2", 30), delegated("x", "dy", "finch", 7), under("x1", "x", "dy", msg.ByNativeID, 8))
		begin, end := hires("a", "d", "thread 1", "look after it", 1, 9)
		w.each(5, user("b", 0), as(begin, func(m *msg.Message) { m.Run, m.Tool.CallID = "b", "e" }))
		w.again(2, "x")
		w.again(2, "x1")
		w.again(3, "g")
		w.commit()
		w.each(1, user("a", 0), begin, end)
		w.again(2, "x")
		w.again(2, "x1")
		w.again(3, "g")
		w.commit()
		w.each(5, as(end, func(m *msg.Message) { m.Run, m.Tool.CallID = "b", "e" }), stop("b", 12))
		w.each(2, stop("x1", 9), stop("x", 10), stop("x2", 31))
		w.each(3, result("g", "cg", 18), stop("g", 20))
		w.each(1, stop("a", 21))
		// A stream that cannot be decoded again.
		w.gone[4] = true
		lost := hired("l", "thread 2", "", 42)
		w.each(4, lost[0], lost[1], called("l", "cl", "shell", 43))
		begin, end = hires("c", "d2", "thread 2", "", 41, 50)
		w.each(1, user("c", 40), begin, end, stop("c", 51))
		w.each(4, stop("l", 52))
		w.gone[4] = false
		w.do("rejoin", func() error {
			if err := w.a.Rejoin(RunRef{"default", "codex", "lost", "none"}, time.Unix(0, t0)); err != nil {
				return err
			}
			return w.a.Rejoin(RunRef{"default", "codex", "lost", "l"}, time.Unix(0, t0+52*sec))
		})
		w.again(4, "l")
		w.commit()
		// A tool whose output names the thread; the prompt alone, of two that ask the same; a caller that its own call would be below.
		script := called("c", "s", "Bash", 61)
		w.each(6, hired("y", "thread 3", "", 62)...)
		w.each(1, user("c2", 60), script, as(result("c", "s", 63), func(m *msg.Message) { m.Delegation = msg.Delegate{To: "codex", CorrelationID: "thread 3"} }))
		w.again(6, "y")
		w.commit()
		w.each(6, hired("z", "", "same", 73)...)
		for i, run := range []string{"c2", "c2"} {
			w.each(1, as(delegated(run, fmt.Sprint("p", i), "owl", 71+int64(i)), func(m *msg.Message) { m.Delegation.CorrelationPrompt = "same" }))
		}
		w.again(6, "z")
		w.commit()
		back := as(delegated("z", "back", "owl", 74), func(m *msg.Message) { m.Delegation.CorrelationID = "thread c" })
		w.each(1, as(status("c2", msg.RunStart, 75), func(m *msg.Message) { m.Delegation.CorrelationID = "thread c" }))
		w.each(6, back, stop("z", 80))
		w.each(1, answered("c2", "p0", 82), answered("c2", "p1", 83), stop("c2", 84))
	})
}

// TestRowsOfTeammates: agents that write to each other, with a name for each other; one of many; many turns, of which the oldest are known by their place alone.
func TestRowsOfTeammates(t *testing.T) {
	newStage(t, Settings{}).play("teammates", func(w *stage) {
		w.on(1, "legion", "heron").on(2, "legion", "wren").on(3, "legion", "owl").on(4, "legion", "owl")
		for i := range int64(maxEndedRuns + 3) {
			run, at := fmt.Sprint("t", i), 10*i
			w.quietly(func() {
				w.each(1, user(run, at))
				w.each(1, sends(run, "d"+run, "wren", "text "+run, at+1)...)
				w.each(1, stop(run, at+3))
			})
		}
		w.each(1, user("t99", 300))
		for i := range int64(3) {
			text := fmt.Sprint("text t", i)
			w.each(2, gets(fmt.Sprint("w", i), "heron", text, 10*i+2), said(fmt.Sprint("w", i), fmt.Sprint("q", i), 10*i+4), stop(fmt.Sprint("w", i), 10*i+5))
		}
		w.each(2, as(status("", msg.NoSignal, 6), func(m *msg.Message) { m.Agent = msg.Agent{Name: "Wren", Kind: msg.KindAgent} }))
		many := as(delegated("t99", "all", "", 301), func(m *msg.Message) { m.Delegation.Async, m.Delegation.CorrelationPrompt = true, "to all" })
		w.each(1, many)
		w.each(2, writtenTo("mwren-1", "wren-1", "", "to all", 302)...)
		w.each(3, writtenTo("mowl-1", "owl-1", "", "to all", 302)...)
		w.commit()
		w.each(3, stop("mowl-1", 310), stop("mowl-1", 320))
		w.each(2, stop("mwren-1", 311))
		w.each(4, under("below", "mowl-1", "", 0, 330), stop("below", 331))
		w.each(1, stop("t99", 340))
		w.until(400000)
		w.commit()
	})
}

// hopsOf are the hops of formats that are recorded between programs.
func hopsOf(format string) Hops {
	return map[string]Hops{"mcp": {Calls: true}, "a2a": {Texts: true, Turns: true}, "acp": {Turns: true}}[format]
}

// TestRowsOfHops: requests between programs, before and behind the calls that cause them, by id, span, arguments, text and session.
func TestRowsOfHops(t *testing.T) {
	every := Hops{Calls: true, Texts: true, Turns: true}
	newStage(t, Settings{Hops: hopsOf, Read: every}).play("hops", func(w *stage) {
		const session = "0d1e2f3a-session"
		w.on(1, "claude-code", session).on(2, "mcp", "wire").on(3, "mcp", "wire-server").on(4, "a2a", "fleet").on(5, "acp", session).on(6, "codex", session).on(7, "mcp", "early")
		asks := func(run, id, args string, at int64) msg.Message {
			m := called(run, "hop "+run, "turn", at)
			m.Signal, m.Tool.Arguments, m.Delegation.CorrelationID = msg.RunStart, msg.Plain(args), id
			return m
		}
		turns := func(id, args string, at int64) msg.Message {
			m := called("a", id, "mcp__lamp__turn", at)
			m.Tool.Server, m.Tool.Arguments = "lamp", msg.Plain(args)
			return m
		}
		over := func(run string, at int64) []msg.Message {
			return []msg.Message{result(run, "hop "+run, at), stop(run, at)}
		}
		// By the id of the call: the hop is read first, then behind; recorded on both sides.
		w.each(2, asks("h1", "c1", `{"to":1}`, 12))
		w.each(2, over("h1", 18)...)
		w.each(1, user("a", 0), turns("c1", `{"to":1}`, 10))
		w.again(2, "h1")
		w.commit()
		w.each(3, asks("h1s", "c1", `{"to":1}`, 13))
		w.each(3, over("h1s", 17)...)
		w.each(1, result("a", "c1", 20))
		// By the arguments and the time: one, then two at once; one of no call.
		w.each(1, turns("c2", `{"b":1,"to":2}`, 100))
		w.each(2, asks("h2", "", `{"to":2, "b":1}`, 102))
		w.each(2, over("h2", 103)...)
		w.each(1, result("a", "c2", 105), turns("c3", `{"to":3}`, 110), turns("c4", `{"to":3}`, 110))
		w.each(2, asks("h3", "", `{"to":3}`, 111), asks("h4", "", `{"to":3}`, 112))
		w.each(1, result("a", "c3", 115), result("a", "c4", 116))
		w.again(2, "h3")
		w.again(2, "h4")
		w.commit()
		w.each(2, asks("h5", "", `{"to":5}`, 120))
		w.each(2, over("h5", 121)...)
		// The result is read before the call.
		w.each(1, result("a", "c99", 161), result("a", "c9", 128), turns("c9", `{"to":9}`, 124))
		w.each(2, asks("h9", "", `{"to":9}`, 125), asks("h10", "", `{"to":9}`, 129))
		w.each(2, over("h9", 127)...)
		// By a span: of a traceparent, and of the request that the stream is.
		const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
		w.each(2, as(asks("h6", "", `{"to":6}`, 130), func(m *msg.Message) { m.SetAttr("traceparent", "00-"+trace+"-"+span+"-01") }))
		w.each(1, as(called("a", "c6", "Bash", 129), func(m *msg.Message) { m.SetAttr("span", trace+"/"+span) }), result("a", "c6", 133))
		w.again(2, "h6")
		w.commit()
		w.each(2, over("h6", 131)...)
		// A text to another agent, whose task is a run below; arguments that are no text.
		text := "Where will the tide be at noon?"
		w.each(1, as(called("a", "c7", "mcp__fleet__send", 140), func(m *msg.Message) {
			m.Tool.Server, m.Tool.Arguments = "fleet", msg.Plain(`{"agent":"pilot","n":1,"message":"`+text+`"}`)
		}), as(delegated("a", "c8", "pilot", 150), func(m *msg.Message) { m.Delegation.Task = msg.Plain(text + " ") }))
		sent := func(run string, at int64) msg.Message {
			m := delegated(run, "hop "+run, "pilot", at)
			m.Signal, m.Delegation.Task = msg.RunStart, msg.Plain(text)
			return m
		}
		w.each(4, sent("m1", 141), stop("m1", 143))
		w.each(1, result("a", "c7", 145))
		w.each(4, sent("m2", 151))
		w.each(1, answered("a", "c8", 158))
		w.again(4, "m2")
		w.commit()
		w.each(4, stop("m2", 156), user("task", 160), stop("task", 165))
		// Turns in which another program works, in the session that both name.
		w.each(6, user("k1", 202), called("k1", "kc", "shell", 203), result("k1", "kc", 204), stop("k1", 207))
		w.each(5, as(user("turn1", 200), func(m *msg.Message) { m.Signal = msg.RunStart }), stop("turn1", 209))
		w.again(6, "k1")
		w.commit()
		w.each(5, as(user("turn2", 300), func(m *msg.Message) { m.Signal = msg.RunStart }))
		w.each(6, user("k2", 301), stop("k2", 308))
		w.each(5, stop("turn2", 309))
		w.each(1, stop("a", 310))
		w.do("is it awaited?", func() error {
			for at, session := range map[uint64]string{2: "wire", 4: "fleet", 6: session} {
				is, err := w.a.Awaits(at, []RunRef{{"default", w.streams[at].format, session, ""}})
				if err != nil {
					return err
				}
				w.note("stream %d: %t", at, is)
			}
			return nil
		})
	})
	hopsThatAreNotRead(t)
}

// hopsThatAreNotRead: of the hops that are not read nothing is remembered; calls of no server, and of many or long arguments, are no cause of a text.
func hopsThatAreNotRead(t *testing.T) {
	const text = "How deep is the harbour at dusk?"
	for _, read := range []Hops{{}, {Calls: true}, {Texts: true}, {Turns: true}} {
		w := newStage(t, Settings{Hops: hopsOf, Read: read})
		w.play(fmt.Sprintf("hops-%t-%t-%t", read.Calls, read.Texts, read.Turns), func(w *stage) {
			w.on(1, "claude-code", "0d1e2f3a-session").on(2, "mcp", "wire").on(4, "a2a", "fleet").on(5, "acp", "0d1e2f3a-session").on(6, "codex", "0d1e2f3a-session")
			call := as(called("a", "c", "mcp__lamp__turn", 1), func(m *msg.Message) {
				m.Tool.Server, m.Tool.Arguments = "lamp", msg.Plain(`{"text":"Where will the tide be?"}`)
				m.SetAttr("span", "0af7651916cd43dd8448eb211c80319c/b7ad6b7169203331")
			})
			w.say(1, user("a", 0), call)
			w.say(2, as(called("h", "hh", "turn", 2), func(m *msg.Message) {
				m.Signal, m.Tool.Arguments = msg.RunStart, msg.Plain(`{"text":"Where will the tide be?"}`)
			}))
			w.say(4, as(delegated("m", "hm", "pilot", 2), func(m *msg.Message) {
				m.Signal, m.Delegation.Task = msg.RunStart, msg.Plain("Where will the tide be?")
			}))
			w.say(2, as(called("i", "hi", "turn", 3), func(m *msg.Message) {
				m.Signal = msg.RunStart
				m.SetAttr("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
			}))
			w.say(5, as(user("turn", 0), func(m *msg.Message) { m.Signal = msg.RunStart }))
			w.say(6, user("k", 2))
			w.say(1, result("a", "c", 5))
			w.commit()
			for i, args := range []string{`{"text":"` + text + `"}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"text":"` + text + `"}`, `["` + text + `"]`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"text":"` + text + `"}`} {
				at := int64(100 + 1000*i)
				call := called("a", fmt.Sprint("t", i), "send", at)
				if call.Tool.Arguments = msg.Plain(args); i > 0 {
					call.Tool.Server = "fleet"
				}
				w.say(1, call, result("a", fmt.Sprint("t", i), at+5))
				w.say(4, as(delegated(fmt.Sprint("m", i), fmt.Sprint("ht", i), "pilot", at+1), func(m *msg.Message) { m.Signal, m.Delegation.Task = msg.RunStart, msg.Plain(text) }))
			}
			w.commit()
		})
	}
}

// TestRowsOfExchanges: the request that began a run, and the pace of its response.
func TestRowsOfExchanges(t *testing.T) {
	newStage(t, Settings{}).play("exchanges", func(w *stage) {
		w.on(1, "f", "s").on(2, "f", "s").on(3, "f", "s")
		one, two := asked(1, "POST", 200), asked(2, "POST", 200)
		two.RemoteState = "k=v"
		w.respond(1, 5, one)
		w.respond(2, 3, two)
		w.respond(3, 1, asked(3, "GET", 200))
		w.each(1, user("a", 6), under("x", "a", "", 0, 7))
		w.each(2, said("a", "r1", 8))
		w.each(3, said("a", "r2", 9))
		two.Session, two.Run, two.Pace = "s", "a", msg.Pace{Start: t0 + 3*sec, Total: 20 * sec, Bytes: 9}
		w.respond(2, 3, two)
		w.commit()
		w.respond(2, 3, two)
		w.commit()
		one.Session, one.Pace = "s", msg.Pace{Start: t0 + 5*sec, Total: 2 * sec}
		w.respond(1, 5, one)
		w.each(1, stop("x", 10), stop("a", 11))
		w.closed(2, "a")
		w.each(2, user("b", 40))
		socket := asked(4, "GET", 101)
		socket.Pace = msg.Pace{Start: t0 + 50*sec, Total: sec}
		w.respond(3, 50, socket)
		w.each(3, user("c", 51), stop("c", 52))
		w.do("the span of a response", func() error {
			id, err := w.a.Chat(RunRef{"default", "f", "s", ""}, "r1")
			w.note("%s", id)
			return err
		})
	})
}

// TestRowsOfReusedIDs: servers that repeat their ids.
func TestRowsOfReusedIDs(t *testing.T) {
	newStage(t, Settings{LocalIDs: func(f string) bool { return f == "ollama" }}).play("reused", func(w *stage) {
		w.on(1, "ollama", "s").on(2, "ollama", "s").on(3, "ollama", "s").on(4, "ollama", "s")
		ask := func(run string, at int64) msg.Message {
			return as(user(run, at), func(m *msg.Message) { m.Signal, m.Key = msg.RunStart, "prompt" })
		}
		answer := func(run, resp string, at int64) msg.Message {
			return as(said(run, resp, at), func(m *msg.Message) { m.ParentKey = "prompt" })
		}
		w.each(1, ask("r", 1), answer("r", "chat-1", 2), in("chat-1", called("r", "call_0", "look", 3)), tokens("r", "chat-1", 3, 7))
		w.closed(1, "r")
		w.each(2, as(result("r", "call_0", 5), func(m *msg.Message) { m.ParentKey = "call" }), answer("r", "chat-1", 6), in("chat-1", called("r", "call_0", "look", 7)))
		w.flush(2, answer("r", "chat-1", 8), in("chat-2", called("q", "call_0", "look", 9)))
		w.commit()
		w.closed(2, "r")
		w.each(3, ask("r", 10), answer("r", "chat-1", 11), tokens("r", "chat-1", 11, 9), in("chat-1", called("r", "call_0", "look", 12)))
		w.each(4, result("r", "call_0", 14), answer("r", "chat-3", 15), stop("r", 16))
		w.closed(3, "r")
		w.again(3, "r")
		w.commit()
	})
}

// TestRowsOfVerdicts: work without progress, judged as time goes on; its verdicts, before and after a restart.
func TestRowsOfVerdicts(t *testing.T) {
	last := int64(0)
	s := Settings{
		IdleRun: 3 * time.Hour, ShowsDelegates: func(f string) bool { return f == "f" }, Serves: func(f string) bool { return f == "served" },
		LastBytes: func(stream uint64) int64 { return last * int64(stream%2) },
	}
	newStage(t, s).held("verdicts", func(w *stage) {
		last = 0
		w.on(1, "f", "s").on(2, "served", "s2").on(3, "f", "s")
		until := func(at int64) {
			for ; w.now < at; w.now += 5 {
				now := time.Unix(0, t0+w.now*sec)
				w.a.Looks(now)
				if err := w.a.Idle(now, 0); err != nil {
					w.failed(err)
				}
			}
			w.until(at)
			w.commit()
		}
		ask := func(run, model string, at int64) msg.Message {
			return as(status(run, msg.ModelStart, at), func(m *msg.Message) { m.Model = model })
		}
		// A model that does not answer; then it does.
		w.each(1, user("a", 0), ask("a", "lamp-1", 1))
		until(400)
		last = t0 + 395*sec
		until(405)
		w.each(1, as(said("a", "r1", 406), func(m *msg.Message) { m.Model = "lamp-1" }), as(makes("c1", 407), func(m *msg.Message) { m.ResponseID = "r1" }))
		until(420)
		// A call that does not return, of a child, whose caller waits.
		w.each(1, ends("c1", "ok", 421), as(delegated("a", "d1", "scout", 422), func(m *msg.Message) { m.ResponseID = "r1" }))
		w.each(1, under("x", "a", "d1", msg.ByNativeID, 423), as(makes("cx", 424), func(m *msg.Message) { m.Run = "x" }))
		until(2200)
		w.each(1, as(ends("cx", "ok", 2201), func(m *msg.Message) { m.Run = "x" }))
		until(2210)
		// A person is asked, beside a run that fails again and again.
		w.each(1, stop("x", 2211), answered("a", "d1", 2212), called("a", "c2", "AskUserQuestion", 2213), as(status("a", msg.WaitStart, 2214, msg.AttrWaitsFor, msg.ForPerson), func(m *msg.Message) { m.Tool.CallID = "c2" }))
		until(2230)
		w.each(1, as(status("a", msg.WaitEnd, 2300), func(m *msg.Message) { m.Tool.CallID = "c2" }), result("a", "c2", 2301))
		until(2310)
		for i := range int64(6) {
			at := 2320 + 10*i
			w.each(1, makes(fmt.Sprint("l", i), at), ends(fmt.Sprint("l", i), "FAIL", at+1))
			until(at + 5)
		}
		w.each(1, status("a", msg.RunPause, 2400))
		until(2430)
		w.each(3, status("b", msg.RunResume, 2440), ask("b", "", 2441))
		until(3500)
		w.each(3, stop("b", 3501))
		// A format whose bytes show the life of its server.
		w.each(2, user("s", 3510), ask("s", "lamp-2", 3511), user("s3", 3511))
		until(4500)
		w.each(2, said("s", "rs", 4501), stop("s", 4502), stop("s3", 4503))
		w.each(1, called("a", "never", "Bash", 4510), stop("a", 4511))
		until(40000)
	})
}

// TestRowsOfManyMessages: of each kind a session remembers a number.
func TestRowsOfManyMessages(t *testing.T) {
	newStage(t, Settings{}).play("many", func(w *stage) {
		w.on(1, "f", "s").on(2, "f", "s")
		w.quietly(func() {
			w.say(1, user("a", 0))
			for i := range int64(2 * maxChats) {
				w.say(1, said("a", fmt.Sprint("r", i), i))
			}
			for i := range int64(maxCounted + 2) {
				w.say(1, usageOf("a", fmt.Sprint("u", i), 200+i, msg.Partial, msg.Tokens{Input: 1}))
			}
			for i := range int64(maxResults + 2) {
				w.say(1, in("u", called("a", fmt.Sprint("c", i), "look", 300)), result("a", fmt.Sprint("c", i), 301))
			}
			for i := range int64(maxEvents + 2) {
				w.say(1, status("a", msg.Retry, 400+i))
			}
		})
		w.commit()
		// The first responses are forgotten, the last are not.
		w.each(1, said("a", "r0", 500), said("a", fmt.Sprint("r", 2*maxChats-1), 501), usageOf("a", "u0", 502, msg.Complete, msg.Tokens{Input: 5}), usageOf("a", "u60", 503, msg.Complete, msg.Tokens{Input: 5}))
		w.quietly(func() {
			for i := range int64(maxEarly + 2) {
				w.say(1, result("a", fmt.Sprint("e", i), 600))
			}
			for i := range maxFacts + 2 {
				w.say(1, linked("", fmt.Sprint("k", i), fmt.Sprint("x", i), msg.ByMetaFile, 0, 600))
			}
			for i := range maxDone + 2 {
				w.say(1, delegated("a", fmt.Sprint("o", i), "", 601), answered("a", fmt.Sprint("o", i), 602))
			}
			w.say(1, called("a", "e0", "look", 603), called("a", "e2", "look", 603), called("a", "e257", "look", 603))
			w.say(1, delegated("a", "k0", "", 604), delegated("a", "k2", "", 604), delegated("a", "k257", "", 604))
			w.say(1, linked("", "o0", "y0", msg.ByNativeID, 0, 605), linked("", "o4", "y4", msg.ByNativeID, 0, 605), linked("", "o257", "y257", msg.ByNativeID, 0, 605))
		})
		w.commit()
		w.each(1, inferred(msg.Delegation, "a", "nobody", 606))
		w.quietly(func() {
			for i := range maxNames + 2 {
				w.say(1, as(said("a", "rn", 700), func(m *msg.Message) { m.Agent = msg.Agent{ID: fmt.Sprint("i", i), Name: fmt.Sprint("n", i)} }))
			}
		})
		w.each(1, delegated("a", "n1", "i0", 701), delegated("a", "n2", fmt.Sprint("i", maxNames+1), 701), delegated("a", "n3", fmt.Sprint("i", maxNames-1), 701))
		w.each(1, as(called("a", "long", "look", 702), func(m *msg.Message) {
			m.Tool.Arguments = msg.Plain(`{"` + strings.Repeat("n", 60) + `":1,"b":[{"x":"}"}],"a":null,"c":{"d":"\"]"},"e":false,"f":-1.5}`)
		}))
		w.each(1, stop("a", 800))
	})
}

// TestRowsOfHopsInACircle: a hop whose call works in a turn of the hop's own is below nothing.
func TestRowsOfHopsInACircle(t *testing.T) {
	newStage(t, Settings{Hops: hopsOf, Read: Hops{Calls: true, Texts: true, Turns: true}}).play("hops-circle", func(w *stage) {
		const session, text = "0d1e2f3a-session", "Where will the tide be at noon?"
		w.on(1, "a2a", session).on(2, "codex", session)
		w.each(1, as(delegated("m", "hm", "pilot", 12), func(m *msg.Message) { m.Signal, m.Delegation.Task = msg.RunStart, msg.Plain(text) }))
		w.each(1, as(below("task", "m", "", 13), func(m *msg.Message) { m.Signal = msg.RunStart }))
		w.each(2, user("k", 14), as(called("k", "c", "mcp__fleet__send", 12), func(m *msg.Message) {
			m.Tool.Server, m.Tool.Arguments = "fleet", msg.Plain(`{"message":"`+text+`"}`)
		}), result("k", "c", 20), stop("k", 21))
		w.each(1, stop("task", 22), answered("m", "hm", 23), stop("m", 23))
	})
}

// TestRowsOfManyTurns: the last turns of a session are known, and those that wait for a call.
func TestRowsOfManyTurns(t *testing.T) {
	newStage(t, Settings{}).play("turns", func(w *stage) {
		w.on(1, "f", "s")
		async := as(delegated("t0", "d", "owl", 1), func(m *msg.Message) { m.Delegation.Async = true })
		w.each(1, user("t0", 0), async, user("t1", 2), called("t1", "c", "Bash", 3), user("t2", 4))
		w.quietly(func() {
			for i := range int64(maxEndedRuns + 3) {
				w.each(1, user(fmt.Sprint("u", i), 10+i))
			}
		})
		w.each(1, answered("t0", "d", 50), result("t1", "c", 51), said("u0", "late", 52), said("u5", "r", 53))
		for i := range int64(2) {
			w.each(1, user(fmt.Sprint("v", i), 60+i))
		}
	})
}

// TestRowsOfLifeSigns: bytes of a stream are a sign of life of the one run that waits for a model there, and of none where a server's own life shows.
func TestRowsOfLifeSigns(t *testing.T) {
	var w *stage
	s := Settings{
		IdleRun: 9 * time.Hour, Serves: func(f string) bool { return f == "served" },
		LastBytes: func(stream uint64) int64 {
			if stream == 2 {
				return 0
			}
			return t0 + w.now*sec
		},
	}
	w = newStage(t, s)
	w.held("lifesigns", func(stage *stage) {
		w = stage
		w.on(1, "f", "alone").on(2, "f", "quiet").on(3, "f", "two").on(4, "served", "served").on(5, "f", "ended")
		asks := func(run, resp string, at int64) []msg.Message {
			ask := as(status(run, msg.ModelStart, at+3), func(m *msg.Message) { m.Model = "lamp-1" })
			return []msg.Message{user(run, at), as(said(run, resp, at+1), func(m *msg.Message) { m.Model = "lamp-1" }), signaled(run, resp, msg.ModelEnd, at+2), ask}
		}
		for stream := range uint64(5) {
			w.say(stream+1, asks("a", "r1", 0)...)
		}
		w.say(3, asks("b", "r2", 2)...)
		w.say(5, stop("a", 5))
		for w.now < 4000 {
			w.now += 100
			w.do(fmt.Sprint("at ", w.now), func() error { return w.a.Idle(time.Unix(0, t0+w.now*sec), 0) })
		}
		w.commit()
		for stream := range uint64(5) {
			w.say(stream+1, as(said("a", "r3", 4001), func(m *msg.Message) { m.Model = "lamp-1" }))
		}
		w.until(4006)
		w.until(4030)
		w.commit()
	})
}
