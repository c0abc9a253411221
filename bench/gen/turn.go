package gen

import (
	"time"
)

// turn is one user turn while it is generated.
type turn struct {
	*session
	last   []byte // the last text
	tokens tokens // of its responses, if their lines have them
}

// tokens are counted as the protocol does: output includes the reasoning.
type tokens struct{ input, output, read, write, thought uint64 }

func (t *tokens) add(u tokens) {
	t.input += u.input
	t.output += u.output
	t.read += u.read
	t.write += u.write
	t.thought += u.thought
}

// count adds a usage message with those tokens to the account, if there are any.
func (s *session) count(u tokens) {
	if u == (tokens{}) {
		return
	}
	s.account.Message("usage", nil)
	s.account.Tokens(u.input, u.output-u.thought, u.read, u.write, u.thought)
}

func (l *line) usage(u tokens) *line {
	l.key("usage").open('{')
	l.num("input_tokens", u.input).num("cache_creation_input_tokens", u.write).num("cache_read_input_tokens", u.read).num("output_tokens", u.output)
	if u.thought > 0 {
		l.key("output_tokens_details").open('{').num("thinking_tokens", u.thought).close('}')
	}
	return l.str("service_tier", []byte("standard")).close('}')
}

func (s *session) usage() tokens {
	return tokens{uint64(2 + s.rng.IntN(900)), uint64(20 + s.rng.IntN(3000)), uint64(s.rng.IntN(60000)), uint64(s.rng.IntN(4000)), 0}
}

// preamble writes the lines that newer writers put before the first response.
func (t *turn) preamble() {
	if !t.stored() {
		return
	}
	l := t.store("SystemMessage")
	l.str("subtype", []byte("init")).key("data").open('{')
	l.str("type", []byte("system")).str("subtype", []byte("init")).str("cwd", []byte("/srv/harbour")).str("model", t.model)
	l.raw("tools", `["Task", "Bash", "Read", "Write", "Edit", "Grep", "Glob", "mcp__legion__send_comm"]`).close('}').close('}')
	t.end()
	t.account.Message("status", nil)
	if t.chance(0.5) {
		l := t.store("SystemMessage")
		l.str("subtype", []byte("status")).key("data").open('{').str("status", []byte("requesting")).close('}').close('}')
		t.end()
		t.account.Message("status", nil)
	}
}

// respond writes a response of the model, with tools or as the last of its turn.
func (t *turn) respond(tools bool) {
	t.rareLine()
	t.advance(3 * time.Second)
	r := response{session: t.session}
	if t.chance(0.25) {
		for range 1 + t.rng.IntN(2) {
			r.thoughts = append(r.thoughts, t.text(550, false))
		}
	}
	if !tools || t.chance(0.55) {
		r.text = t.text(600, t.chance(0.2))
	}
	if tools {
		n := 1
		if t.chance(0.2) {
			n += 1 + t.rng.IntN(3)
		}
		for range n {
			r.calls = append(r.calls, t.call())
		}
	}
	r.write()
	if r.text != nil {
		t.last = r.text
	}
	t.tokens.add(r.reported)
	t.run(r.calls)
}

// run runs the calls and writes their results.
func (t *turn) run(calls []*call) {
	for _, c := range calls {
		c.writeStates()
	}
	for _, c := range calls {
		if c.tool == "Agent" && c.async && t.background == nil {
			t.background = c
			c.startBackground()
			continue
		}
		if c.sub && t.stored() && t.chance(0.7) {
			c.runSubAgent(1 + t.rng.IntN(3))
		}
	}
	t.rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	var done []*call
	for _, c := range calls {
		if c != t.background {
			done = append(done, c)
		}
	}
	if len(done) > 1 && t.chance(0.5) {
		t.answer(done...)
		return
	}
	for _, c := range done {
		t.answer(c)
	}
}

// interrupt ends the turn in the middle of a call.
func (t *turn) interrupt() {
	r := response{session: t.session, calls: []*call{t.call()}}
	r.calls[0].async = false
	r.write()
	t.tokens.add(r.reported)
	c := r.calls[0]
	c.writeStates()
	t.system("interrupt", "Interrupt sent", "status", true)
	if t.stored() && t.lifecycle {
		l := c.update("interrupted")
		l.time("completed_at", t.now).close('}')
		t.end()
		if c.waits {
			t.account.Message("status", nil)
		}
		t.account.Message(c.kind()+"_result", nil)
		t.account.Errors++
	} else {
		t.account.OpenCalls++
	}
	t.system("interrupt_success", "The keeper rang the bell", "stop", true)
	t.account.Errors++
	t.countTokens()
}

// countTokens counts the tokens of a turn without a result.
func (t *turn) countTokens() {
	t.count(t.tokens)
	t.tokens = tokens{}
}

// result writes the line that ends the turn.
func (t *turn) result() {
	t.advance(50 * time.Millisecond)
	u := t.usage()
	if t.chance(0.3) {
		u.thought = u.output / 3
	}
	failed := t.chance(0.03)
	subtype, text := "success", t.last
	if failed {
		subtype, text = "error_max_turns", t.text(80, false)
	}
	none := t.chance(0.05) // usage: null
	if none {
		u = t.tokens
	}
	if t.stored() {
		l := t.store("ResultMessage")
		t.resultFields(l, subtype, failed, none, u)
		l.str("stop_reason", []byte("end_turn")).str("result", text).close('}')
	} else {
		phrase := !failed && t.chance(0.3)
		if phrase {
			text = []byte("Conversation success")
		}
		l := t.begin("result", false)
		l.str("content", text).key("metadata").open('{')
		t.resultFields(l, subtype, failed, none, u)
		l.close('}')
	}
	t.end()
	if failed {
		t.account.Message("stop", text)
		t.account.Errors++
	} else {
		t.account.Message("stop", nil)
	}
	t.count(u)
	t.tokens = tokens{}
}

func (t *turn) resultFields(l *line, subtype string, failed, none bool, u tokens) {
	is := "false"
	if failed {
		is = "true"
	}
	l.str("subtype", []byte(subtype)).raw("is_error", is).num("duration_ms", uint64(t.rng.IntN(90000)))
	l.num("duration_api_ms", uint64(t.rng.IntN(90000))).num("num_turns", uint64(1+t.rng.IntN(9))).raw("total_cost_usd", "0.0421")
	if none {
		l.raw("usage", "null")
	} else {
		l.usage(u)
	}
	l.raw("permission_denials", "[]")
}
