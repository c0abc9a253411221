package gen

// response is one response of the model.
type response struct {
	*session
	parent   *call // the sub-agent that made it; nil for the turn's own
	thoughts [][]byte
	text     []byte
	calls    []*call

	id       string
	reported tokens // the last tokens that its lines have
}

// write writes it as one line of generation 1, or as blocks.
func (r *response) write() {
	for _, th := range r.thoughts {
		r.account.Message("reasoning", th)
	}
	if r.text != nil {
		r.account.Message("assistant", r.text)
	}
	if r.stored() {
		r.blocks()
	} else {
		r.flat()
	}
	for _, c := range r.calls {
		c.countCall()
	}
}

func (r *response) flat() {
	l := r.begin("assistant", false)
	text := r.text
	if text == nil {
		text = []byte("Assistant response")
	}
	l.str("content", text)
	if r.thoughts == nil && r.calls == nil && r.chance(0.05) {
		r.end() // metadata may be missing
		return
	}
	l.key("metadata").open('{')
	l.key("tool_uses").open('[')
	for _, c := range r.calls {
		l.open('{')
		c.fields(l, "id")
		l.time("timestamp", r.now).close('}')
	}
	l.close(']').raw("tool_results", "[]")
	if r.thoughts != nil {
		var all []byte
		l.key("thinking_blocks").open('[')
		for i, th := range r.thoughts {
			l.open('{').str("content", th).time("timestamp", r.now).close('}')
			if i > 0 {
				all = append(all, ' ')
			}
			all = append(all, th...)
		}
		l.close(']').str("thinking_content", all)
	}
	l.raw("has_tool_uses", boolString(r.calls != nil)).raw("has_thinking", boolString(r.thoughts != nil)).raw("has_tool_results", "false")
	l.str("model", r.model).str("session_id", []byte(r.session.id)).close('}')
	r.end()
}

func (r *response) blocks() {
	r.id = r.name("msg_")
	u := r.usage()
	u.output = uint64(1 + r.rng.IntN(9)) // a snapshot from its beginning
	parts := len(r.thoughts) + len(r.calls)
	if r.text != nil {
		parts++
	}
	var l *line
	block := func(write func(l *line)) {
		if l == nil || r.split {
			l = r.store("AssistantMessage").key("content").open('[')
		}
		parts--
		l.open('{')
		write(l)
		l.close('}')
		if parts > 0 && !r.split {
			return
		}
		l.close(']').str("model", r.model)
		if r.parent != nil {
			l.str("parent_tool_use_id", []byte(r.parent.id))
		} else {
			l.raw("parent_tool_use_id", "null")
		}
		u.output += uint64(r.rng.IntN(3)) // it may have grown
		l.raw("error", "null").usage(u).str("message_id", []byte(r.id)).raw("stop_reason", "null").close('}')
		r.end()
	}
	for _, th := range r.thoughts {
		block(func(l *line) {
			r.tag(l, "thinking").str("thinking", th).str("signature", []byte("c2lnbmF0dXJl"))
		})
	}
	if r.text != nil {
		block(func(l *line) { r.tag(l, "text").str("text", r.text) })
	}
	for _, c := range r.calls {
		block(func(l *line) { c.fields(r.tag(l, "tool_use"), "id") })
	}
	r.reported = u
}

func (s *session) tag(l *line, typ string) *line {
	if s.tagged {
		l.str("type", []byte(typ))
	}
	return l
}

func boolString(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
