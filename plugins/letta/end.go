package letta

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// outcome is what a reason to stop means.
type outcome uint8

const (
	fine   outcome = iota
	failed         // the run failed, after it had said what it wanted
	broken         // it failed while it was saying something
	paused
)

func outcomeOf(reason string) outcome {
	switch reason {
	case "requires_approval":
		return paused
	case "error", "llm_api_error", "invalid_llm_response", "incomplete_run", "cancelled":
		return broken
	case "invalid_tool_call", "no_tool_call", "max_tokens_exceeded", "insufficient_credits",
		"context_window_overflow_in_system_prompt":
		return failed
	}
	return fine
}

// stop decodes why a run stops.
func (d *stream) stop(v jsonv.Value) {
	reason := ident.Of(v.Get("stop_reason"))
	if reason == "" {
		reason = "unknown"
	}
	r := d.mentioned(v)
	if r == nil { // what comes next may name it
		d.Held = reason
		return
	}
	d.stopped(r, reason)
}

// stopped ends a run. It can end once; an error while it is cleaned up says that it
// stops a second time.
func (d *stream) stopped(r *run, reason string) {
	o := outcomeOf(reason)
	if o == broken {
		d.cut(r)
	}
	d.close(r)
	if r.Ended {
		if r.Stop != reason {
			m := d.status(r, "stop:"+r.ID+"/"+reason, "stop_reason")
			m.FinishReason, m.Time = reason, r.first(m.Key)
		}
		return
	}
	r.Ended, r.Stop = true, reason
	m := d.give(r, msg.Stop, "stop:"+r.ID)
	m.FinishReason = reason
	m.Signal = msg.RunEnd
	switch o {
	case paused:
		m.Signal = msg.RunPause
	case failed, broken:
		m.IsError = true
		m.Tool.ErrorType = reason
	}
}

// done ends a stream. Servers that give no reason to stop end the run with it.
func (d *stream) done() {
	d.abandon()
	if r := d.find(d.Run); r != nil {
		d.close(r)
		if !r.Ended {
			d.stopped(r, "")
		}
	}
}

// usage decodes what a run took, over all its responses. The classes of the protocol
// contain each other.
func (d *stream) usage(v jsonv.Value) {
	v.Get("message_type").Equal("usage_statistics")
	prompt, completion := v.Get("prompt_tokens"), v.Get("completion_tokens")
	if !prompt.Is(jsonv.Number) && !completion.Is(jsonv.Number) {
		d.unknown(v, "usage_statistics")
		return
	}
	r := d.used(v.Get("run_ids"))
	if r == nil {
		r = d.abandon()
	}
	if r != nil {
		d.close(r)
	}
	read := either(v.Get("cached_input_tokens"), v.Path("prompt_tokens_details", "cached_tokens"))
	write := either(v.Get("cache_write_tokens"), v.Path("prompt_tokens_details", "cache_creation_tokens"))
	reasoning := either(v.Get("reasoning_tokens"), v.Path("completion_tokens_details", "reasoning_tokens"))
	took := msg.Tokens{
		CacheRead:  min(read.Uint(), prompt.Uint()),
		Reasoning:  min(reasoning.Uint(), completion.Uint()),
		Provenance: msg.Provider,
	}
	took.CacheWrite = min(write.Uint(), prompt.Uint()-took.CacheRead)
	took.Input = prompt.Uint() - took.CacheRead - took.CacheWrite
	took.Output = completion.Uint() - took.Reasoning
	facts := msg.HashKey(string(prompt.Peek()), string(completion.Peek()), string(read.Peek()), string(write.Peek()), string(reasoning.Peek()))
	key := facts
	if r != nil {
		key = r.ID
		switch r.Usage {
		case "":
			r.Usage = facts
		case facts:
			return // told again
		default: // the first count stands, and counts once
			m := d.status(r, "usage:"+r.ID+"/"+facts, "usage_statistics")
			m.Content, m.Time = v.JSON(), r.first(m.Key)
			return
		}
	}
	m := d.give(r, msg.Usage, "usage:"+key)
	m.Hidden = true
	m.Usage = took
	m.SetAttr("step_count", digits(v.Get("step_count")))
	m.SetAttr("context_tokens", digits(v.Get("context_tokens")))
	var unreported []string
	for _, class := range [...]struct {
		name string
		v    jsonv.Value
	}{
		{"input", prompt}, {"output", completion}, {"cache_read", read}, {"cache_write", write}, {"reasoning", reasoning},
	} {
		if !class.v.Is(jsonv.Number) {
			unreported = append(unreported, class.name)
		}
	}
	m.SetAttr("unreported", strings.Join(unreported, " "))
	if r != nil {
		d.background(r, v.Get("run_ids"))
	}
}

// used returns the run of a count: the last run, unless the count names others only,
// of which one is known. It may be nil.
func (d *stream) used(ids jsonv.Value) *run {
	last := d.find(d.Run)
	named := last
	for id := range ids.Elems() {
		if last == nil {
			if ident.Of(id) == "" {
				return nil
			}
			return d.named(ident.Of(id))
		}
		if ident.Is(id, last.ID) {
			return last
		}
		if r := d.find(ident.Of(id)); r != nil {
			named = r
		}
	}
	return named
}

// either returns v if it is a number, and other otherwise.
func either(v, other jsonv.Value) jsonv.Value {
	if v.Is(jsonv.Number) {
		return v
	}
	return other
}

// digits is a number as an attribute's value; empty when v is none.
func digits(v jsonv.Value) string {
	if !v.Is(jsonv.Number) {
		return ""
	}
	return strconv.FormatInt(v.Int(), 10)
}

// failure decodes an error. One that came up while a run that had ended well was
// cleaned up is no error of the run.
func (d *stream) failure(v jsonv.Value) {
	r := d.mentioned(v)
	if r == nil {
		r = d.abandon()
	}
	if r != nil {
		d.cut(r)
	}
	typ := ident.Of(v.First("error_type", "code"))
	if typ == "" {
		typ = "error"
	}
	content := v.First("message", "error", "detail")
	key := "error:" + msg.HashKey(d.runID(r), typ, string(content.Peek()))
	if typ == "cleanup_error" && r != nil && r.Ended && outcomeOf(r.Stop) == fine {
		m := d.status(r, key, typ)
		m.Content, m.Time = content.Text(), r.first(key)
		return
	}
	m := d.give(r, msg.Error, key)
	if r != nil {
		m.Time = r.first(key)
	}
	m.IsError = true
	m.Tool.ErrorType = typ
	m.Content = content.Text()
	if detail := v.Get("detail"); detail.Exists() && string(detail.Peek()) != string(content.Peek()) {
		m.SetAttr("detail", detail.Text().String())
	}
}
