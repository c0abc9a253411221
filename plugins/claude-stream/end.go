package claudestream

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// over decodes the result line, which ends a turn:
//
//	{subtype: success | error_max_turns | error_during_execution | …, is_error, result, usage, modelUsage, total_cost_usd, …}
func (d *stream) over(ln *line) {
	root := ln.root
	main := d.laneOf(ln, "")
	ln.lane = main
	for _, l := range d.Lanes {
		if l.Session == main.Session {
			d.finish(ln, l)
		}
	}
	d.wake(ln)
	d.short(ln, main)
	sub := ident(root.Get("subtype"))
	m := d.give(ln, msg.Stop, ln.id())
	m.Hidden, m.Signal = true, msg.RunEnd
	m.Model, m.Provider = main.Model, provider("", main.Model)
	m.IsError = root.Get("is_error").Bool() || strings.HasPrefix(sub, "error")
	m.FinishReason = main.Stop
	if stop := ident(root.Get("stop_reason")); stop != "" && m.FinishReason == "" {
		m.FinishReason = stop
	}
	if m.IsError {
		m.FinishReason, m.Tool.ErrorType = "error", sub
		if sub == "" || sub == "success" {
			m.Tool.ErrorType = "api_error"
		}
		if main.Stop == "interrupted" {
			m.FinishReason, m.Tool.ErrorType = "interrupted", "interrupted"
		}
	} else if m.FinishReason == "" {
		m.FinishReason = sub
	}
	text := root.Get("result")
	d.scratch = d.scratch[:0]
	if text.Is(jsonv.String) {
		d.scratch = text.Text().Append(d.scratch)
	}
	if len(d.scratch) > 0 && hash(d.scratch) != main.Said {
		m.Hidden, m.Content = false, text.Text()
	} else if errors := root.Get("errors"); m.IsError && errors.Len() > 0 {
		m.Hidden, m.Content = false, errors.JSON()
	}
	m.SetAttr("subtype", sub)
	for _, name := range [...]string{"duration_ms", "duration_api_ms", "num_turns", "total_cost_usd"} {
		m.SetAttr(name, number(root.Get(name)))
	}
	const most = 4096
	if models := root.Get("modelUsage"); models.Len() > 0 && len(models.Peek()) <= most {
		m.SetAttr("model_usage", string(models.Raw()))
	}
	if n := root.Get("permission_denials").Len(); n > 0 {
		m.SetAttr("permission_denials", strconv.Itoa(n))
	}
	main.Before = main.Before.plus(main.Turn)
	main.Turn, main.Run, main.Init = counts{}, "", ""
}

// short gives the tokens that the turn's responses are short of: their lines tell
// of the output as it stood when they were written, the result line of all of it. It
// sums up the turn, or, where the process takes several prompts, all turns so far;
// what was read shows which, because the counts of that are exact everywhere.
func (d *stream) short(ln *line, l *lane) {
	usage := ln.root.Get("usage")
	if !usage.Is(jsonv.Object) {
		return
	}
	told := read(usage)
	rest, ok := told.minus(l.Turn)
	all := l.Before.plus(l.Turn)
	if !ok || told.Input != l.Turn.Input || told.CacheRead != l.Turn.CacheRead || told.CacheWrite != l.Turn.CacheWrite {
		if since, more := told.minus(all); more {
			rest, ok = since, true
		}
	}
	if !ok || rest == (counts{}) {
		return
	}
	m := d.give(ln, msg.Usage, "usage:"+l.Run)
	m.Hidden, m.Model, m.Provider = true, l.Model, provider("", l.Model)
	m.Usage = rest.tokens(msg.Provider)
	m.SetAttr("of", "result")
	l.Turn = l.Turn.plus(rest)
}
