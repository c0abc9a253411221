package letta

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// outcome is the meaning of a stop reason.
type outcome uint8

const (
	fine   outcome = iota
	failed         // the run failed after its last message
	broken         // it failed in the middle of a message
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

// stop decodes a stop reason.
func (d *stream) stop(v jsonv.Value) {
	reason := ident.Of(v.Get("stop_reason"))
	if reason == "" {
		reason = "unknown"
	}
	r := d.runOrLast(v)
	if r == nil { // the next frame may name it
		d.Held = reason
		return
	}
	d.stopped(r, reason)
}

// stopped ends a run, once; an error in its cleanup sends a second stop reason.
func (d *stream) stopped(r *run, reason string) {
	o := outcomeOf(reason)
	if o == broken {
		d.cutRun(r)
	}
	d.closeBlocks(r)
	if r.Ended {
		if r.Stop != reason {
			m := d.status(r, "stop:"+r.ID+"/"+reason, "stop_reason")
			m.FinishReason, m.Time = reason, r.undatedTime(m.Key)
		}
		return
	}
	r.Ended, r.Stop = true, reason
	m := d.addMessage(r, msg.Stop, "stop:"+r.ID)
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

// done ends a stream. The run of a server without stop reasons ends with it.
func (d *stream) done() {
	d.emitUnanswered()
	if r := d.find(d.Run); r != nil {
		d.closeBlocks(r)
		if !r.Ended {
			d.stopped(r, "")
		}
	}
}

// usage decodes the token usage of a run, over all its responses. The classes of the protocol
// contain each other.
func (d *stream) usage(v jsonv.Value) {
	v.Get("message_type").Equal("usage_statistics")
	prompt, completion := v.Get("prompt_tokens"), v.Get("completion_tokens")
	if !prompt.Is(jsonv.Number) && !completion.Is(jsonv.Number) {
		d.unknown(v, "usage_statistics")
		return
	}
	r := d.runOfUsage(v.Get("run_ids"))
	if r == nil {
		r = d.emitUnanswered()
	}
	if r != nil {
		d.closeBlocks(r)
	}
	read := firstNumber(v.Get("cached_input_tokens"), v.Path("prompt_tokens_details", "cached_tokens"))
	write := firstNumber(v.Get("cache_write_tokens"), v.Path("prompt_tokens_details", "cache_creation_tokens"))
	reasoning := firstNumber(v.Get("reasoning_tokens"), v.Path("completion_tokens_details", "reasoning_tokens"))
	tokens := msg.Tokens{
		CacheRead:  min(read.Uint(), prompt.Uint()),
		Reasoning:  min(reasoning.Uint(), completion.Uint()),
		Provenance: msg.Provider,
	}
	tokens.CacheWrite = min(write.Uint(), prompt.Uint()-tokens.CacheRead)
	tokens.Input = prompt.Uint() - tokens.CacheRead - tokens.CacheWrite
	tokens.Output = completion.Uint() - tokens.Reasoning
	facts := msg.HashKey(string(prompt.Peek()), string(completion.Peek()), string(read.Peek()), string(write.Peek()), string(reasoning.Peek()))
	key := facts
	if r != nil {
		key = r.ID
		switch r.Usage {
		case "":
			r.Usage = facts
		case facts:
			return // a repetition
		default: // the first count is final
			m := d.status(r, "usage:"+r.ID+"/"+facts, "usage_statistics")
			m.Content, m.Time = v.JSON(), r.undatedTime(m.Key)
			return
		}
	}
	m := d.addMessage(r, msg.Usage, "usage:"+key)
	m.Hidden = true
	m.Usage = tokens
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
		d.sleeptimeRuns(r, v.Get("run_ids"))
	}
}

// runOfUsage returns the run of a count: the last run, unless the count names other runs
// only, of which one is known. It may be nil.
func (d *stream) runOfUsage(ids jsonv.Value) *run {
	last := d.find(d.Run)
	named := last
	for id := range ids.Elems() {
		if last == nil {
			if ident.Of(id) == "" {
				return nil
			}
			return d.openNamed(ident.Of(id))
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

// firstNumber returns v if it is a number, and other otherwise.
func firstNumber(v, other jsonv.Value) jsonv.Value {
	if v.Is(jsonv.Number) {
		return v
	}
	return other
}

// digits returns a number as an attribute's value; empty for any other value.
func digits(v jsonv.Value) string {
	if !v.Is(jsonv.Number) {
		return ""
	}
	return strconv.FormatInt(v.Int(), 10)
}

// failure decodes an error. An error in the cleanup of a run that succeeded is not the run's
// error.
func (d *stream) failure(v jsonv.Value) {
	r := d.runOrLast(v)
	if r == nil {
		r = d.emitUnanswered()
	}
	if r != nil {
		d.cutRun(r)
	}
	typ := ident.Of(v.First("error_type", "code"))
	if typ == "" {
		typ = "error"
	}
	content := v.First("message", "error", "detail")
	key := "error:" + msg.HashKey(d.runID(r), typ, string(content.Peek()))
	if typ == "cleanup_error" && r != nil && r.Ended && outcomeOf(r.Stop) == fine {
		m := d.status(r, key, typ)
		m.Content, m.Time = content.Text(), r.undatedTime(key)
		return
	}
	m := d.addMessage(r, msg.Error, key)
	if r != nil {
		m.Time = r.undatedTime(key)
	}
	m.IsError = true
	m.Tool.ErrorType = typ
	m.Content = content.Text()
	if detail := v.Get("detail"); detail.Exists() && string(detail.Peek()) != string(content.Peek()) {
		m.SetAttr("detail", detail.Text().String())
	}
}
