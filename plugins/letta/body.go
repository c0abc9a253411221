package letta

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// body decodes a document that is not a list: the answer to a request that did not stream,
// one stored message, or an error.
func (d *stream) body(v jsonv.Value) {
	messages := v.Get("messages")
	switch {
	case messages.Is(jsonv.Array) && (v.Get("usage").Exists() || v.Get("stop_reason").Exists()):
		d.reply(v, messages)
	case messages.Is(jsonv.Array):
		d.list(messages)
	case len(typeOf(v, v.Get("message_type"), "")) > 0:
		d.level = msg.Summary
		d.record(v, "")
		d.unanswered()
	case v.Get("detail").Exists() || v.Get("error").Exists():
		d.leave()
		d.failure(v)
	default:
		d.unknown(v, "body")
	}
}

// leave cuts the open blocks of all runs: the body is independent of the stream before it.
func (d *stream) leave() {
	for _, r := range d.Runs {
		r.cut(&d.writer)
	}
	d.Run = ""
}

// list decodes stored messages. They lack the run's own records, so they yield to the
// messages of its stream.
func (d *stream) list(v jsonv.Value) {
	d.level = msg.Summary
	d.leave()
	messages := slices.Collect(v.Elems())
	if newestFirst(messages) {
		slices.Reverse(messages)
	}
	for _, m := range messages {
		d.record(m, "")
	}
	d.unanswered()
	d.Run = ""
}

// reply decodes the answer to a request that did not stream:
//
//	{"messages": [...], "stop_reason": {"message_type": "stop_reason", ...}, "usage": {...}}
func (d *stream) reply(v, messages jsonv.Value) {
	d.leave()
	for m := range messages.Elems() {
		d.record(m, "")
	}
	if d.Run == "" {
		d.Run = d.unanswered().id()
	}
	if stop := v.Get("stop_reason"); stop.Is(jsonv.Object) {
		d.stop(stop)
	} else if stop.Is(jsonv.String) {
		d.stop(v)
	}
	if usage := v.Get("usage"); usage.Is(jsonv.Object) {
		d.usage(usage)
	}
	d.done()
	d.Run = ""
}

// newestFirst reports whether a list runs backwards, which is the default order. The dates
// decide; within a second the numbers of the blocks of one message, the order of call and
// result, and whether the first message is a user's.
func newestFirst(list []jsonv.Value) bool {
	if len(list) < 2 {
		return false
	}
	var date dates
	up, before := 0, int64(0)
	for _, v := range list {
		if now := date.read(v.Get("date")).Nanos; now != 0 {
			if before != 0 {
				up += cmp.Compare(now, before)
			}
			before = now
		}
	}
	for i := 1; i < len(list) && up == 0; i++ {
		if a, b := list[i-1], list[i]; bytes.Equal(a.Get("id").Escaped(), b.Get("id").Escaped()) {
			up = bytes.Compare(b.Get("otid").Escaped(), a.Get("otid").Escaped())
		}
	}
	if up != 0 {
		return up < 0
	}
	isInput := func(v jsonv.Value) bool { return v.Get("message_type").In("user_message", "system_message") }
	isResult := func(v jsonv.Value) bool { return v.Get("message_type").In("tool_return_message", "function_return") }
	first, last := list[0], list[len(list)-1]
	if isInput(first) || isInput(last) {
		return !isInput(first)
	}
	return isResult(first) && !isResult(last)
}
