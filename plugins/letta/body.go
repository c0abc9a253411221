package letta

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// list decodes stored messages. They lack the run's own records, so they yield to the
// messages of its stream.
func (d *stream) list(v jsonv.Value) {
	d.level = msg.Summary
	d.cutAll()
	d.Run = ""
	messages := slices.Collect(v.Elems())
	if newestFirst(messages) {
		slices.Reverse(messages)
	}
	d.messages(messages)
	d.emitUnanswered()
	d.Run = ""
}

func (d *stream) messages(list []jsonv.Value) {
	for _, v := range list {
		d.message(v, "")
	}
}

// body decodes a document that is not a list: the answer to a request that did not stream,
// one stored message, or an error.
func (d *stream) body(v jsonv.Value) {
	messages := v.Get("messages")
	switch {
	case messages.Is(jsonv.Array) && (v.Get("usage").Exists() || v.Get("stop_reason").Exists()):
		d.answer(v, messages)
	case messages.Is(jsonv.Array):
		d.list(messages)
	case typeOf(v, "") != isUnknown:
		d.level = msg.Summary
		d.message(v, "")
		d.emitUnanswered()
	case v.Get("detail").Exists() || v.Get("error").Exists():
		d.cutAll()
		d.Run = ""
		d.failure(v)
	default:
		d.unknown(v, "body")
	}
}

// answer decodes the answer to a request that did not stream:
//
//	{"messages": [...], "stop_reason": {"message_type": "stop_reason", ...}, "usage": {...}}
func (d *stream) answer(v, messages jsonv.Value) {
	d.cutAll()
	d.Run = ""
	d.messages(slices.Collect(messages.Elems()))
	if d.Run == "" {
		if r := d.emitUnanswered(); r != nil {
			d.Run = r.ID
		}
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
	up, down := 0, 0
	count := func(more bool) {
		if more {
			up++
		} else {
			down++
		}
	}
	before, _ := date.read(list[0].Get("date"))
	for _, v := range list[1:] {
		if now, _ := date.read(v.Get("date")); now != 0 {
			if before != 0 && now != before {
				count(now > before)
			}
			before = now
		}
	}
	if up != down {
		return down > up
	}
	for i, v := range list[1:] {
		a, b := list[i].Get("otid"), v.Get("otid")
		if ident.Is(list[i].Get("id"), ident.Of(v.Get("id"))) && a.Is(jsonv.String) && b.Is(jsonv.String) {
			count(string(a.Peek()) < string(b.Peek()))
		}
	}
	if up != down {
		return down > up
	}
	first, last := typeOf(list[0], ""), typeOf(list[len(list)-1], "")
	switch {
	case first == isInput || last == isInput:
		return first != isInput
	case first == isResult || last == isResult:
		return first == isResult && last != isResult
	}
	return false
}
