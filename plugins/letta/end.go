package letta

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// paused is the stop reason of a run that waits for a person.
const paused = "requires_approval"

// failed reports whether a run failed by its stop reason, and whether that was in the middle of
// a message.
func failed(reason string) (failed, midway bool) {
	switch reason {
	case "error", "llm_api_error", "invalid_llm_response", "incomplete_run", "cancelled":
		return true, true
	case "invalid_tool_call", "no_tool_call", "max_tokens_exceeded", "insufficient_credits",
		"context_window_overflow_in_system_prompt":
		return true, false
	}
	return false, false
}

// stop decodes a stop reason. Before any frame has named its run, the next one may.
func (d *stream) stop(v jsonv.Value) {
	reason := cmp.Or(ident.Of(v.Get("stop_reason")), "unknown")
	if r := d.runOrLast(v); r != nil {
		r.stop(&d.writer, reason)
	} else {
		d.wait(&pending{Stop: reason, Own: "stop:" + reason})
	}
}

// stop ends a run, once; an error in its cleanup sends a second stop reason.
func (r *run) stop(w *writer, reason string) {
	failed, midway := failed(reason)
	if midway {
		r.cut(w)
	}
	r.close(w)
	if r.Ended {
		if r.Stop != reason {
			m := w.status(r, "stop:"+r.ID+"/"+reason, "stop_reason")
			m.FinishReason, m.Time = reason, r.undated(m.Key)
		}
		return
	}
	r.Ended, r.Stop, r.Fine = true, reason, !failed && reason != paused
	m := w.message(r, msg.Stop, "stop:"+r.ID)
	m.FinishReason, m.Signal, m.IsError = reason, msg.RunEnd, failed
	if failed {
		m.Tool.ErrorType = reason
	}
	if reason == paused {
		m.Signal = msg.RunPause
	}
}

// done ends a stream. The run of a server without stop reasons ends with it.
func (d *stream) done() {
	d.unanswered()
	if r := d.find(d.Run); r != nil {
		r.close(&d.writer)
		if !r.Ended {
			r.stop(&d.writer, "")
		}
	}
}

// usage decodes the token usage of a run, over all its responses. The classes of the protocol
// contain each other, and one that is null is unknown.
func (d *stream) usage(v jsonv.Value) {
	v.Get("message_type").Equal("usage_statistics")
	prompt, completion := v.Get("prompt_tokens"), v.Get("completion_tokens")
	if !prompt.Is(jsonv.Number) && !completion.Is(jsonv.Number) {
		d.unknown(v, "usage_statistics")
		return
	}
	r := d.runOfUsage(v.Get("run_ids"))
	if r == nil {
		r = d.unanswered()
	}
	if r != nil {
		r.close(&d.writer)
	}
	class := func(name, within, nested string) jsonv.Value {
		if n := v.Get(name); n.Is(jsonv.Number) {
			return n
		}
		return v.Path(within, nested)
	}
	read := class("cached_input_tokens", "prompt_tokens_details", "cached_tokens")
	write := class("cache_write_tokens", "prompt_tokens_details", "cache_creation_tokens")
	reasoning := class("reasoning_tokens", "completion_tokens_details", "reasoning_tokens")
	var unreported, counts []string
	names := [...]string{"input", "output", "cache_read", "cache_write", "reasoning"}
	for i, n := range [...]jsonv.Value{prompt, completion, read, write, reasoning} {
		counts = append(counts, string(n.Peek()))
		if !n.Is(jsonv.Number) {
			unreported = append(unreported, names[i])
		}
	}
	facts := msg.HashKey(counts...)
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
			m.Content, m.Time = v.JSON(), r.undated(m.Key)
			return
		}
	}
	m := d.message(r, msg.Usage, "usage:"+key)
	m.Hidden = true
	c := conversation.Counts{Input: prompt.Uint(), Output: completion.Uint(), Reasoning: reasoning.Uint()}
	c.CacheRead = min(read.Uint(), c.Input)
	c.CacheWrite = min(write.Uint(), c.Input-c.CacheRead)
	c.Input -= c.CacheRead + c.CacheWrite
	m.Usage = c.Tokens(msg.Provider)
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "step_count", "context_tokens")
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
			return d.enter(ident.Of(id), jsonv.Value{})
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

// failure decodes an error. An error in the cleanup of a run that succeeded is not the run's
// error.
func (d *stream) failure(v jsonv.Value) {
	r := d.runOrLast(v)
	if r == nil {
		r = d.unanswered()
	}
	if r != nil {
		r.cut(&d.writer)
	}
	typ := cmp.Or(ident.Of(v.First("error_type", "code")), "error")
	content := v.First("message", "error", "detail")
	key := "error:" + msg.HashKey(r.id(), typ, string(content.Peek()))
	if typ == "cleanup_error" && r != nil && r.Fine {
		m := d.status(r, key, typ)
		m.Content, m.Time = content.Text(), r.undated(key)
		return
	}
	m := d.message(r, msg.Error, key)
	if r != nil {
		m.Time = r.undated(key)
	}
	m.IsError, m.Tool.ErrorType, m.Content = true, typ, content.Text()
	if detail := v.Get("detail"); detail.Exists() && string(detail.Peek()) != string(content.Peek()) {
		m.SetAttr("detail", detail.Text().String())
	}
}
