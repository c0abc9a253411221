package main

import (
	"cmp"
	"context"
	"time"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
)

// affordable is how many bytes of a source's files doctor decodes again unasked.
const affordable = 256 << 20

// losses checks for rows that were accepted or read and are not there.
func (d *doctor) losses(ctx context.Context, r *reader) {
	none := true
	for _, reason := range []string{msg.ReasonStoreBehind, msg.ReasonSpoolDamaged, msg.ReasonStateLost} {
		list, err := inspect.DeadLetters(ctx, r, inspect.DeadLetterFilter{Reason: reason})
		if err != nil {
			d.fail("losses", "%v", err)
			return
		}
		for _, l := range list {
			none = false
			d.fail("losses "+cmp.Or(l.Source, l.Origin), "%s (%s; earshot dlq resolve %.12s when that is known)", l.Detail, inspect.Stamp(l.Seen, time.UTC), l.ID)
		}
	}
	if none {
		d.ok("losses", "no store, spool or decoder has lost anything that it had")
	}
}

// suspects returns the file sources with fewer rows than messages and little enough to
// decode again: only that separates replaced rows from lost ones.
func (d *doctor) suspects(accounts []inspect.Account, rows map[string]inspect.Stored) (names []string) {
	messages, bytes := make(map[string]int64), make(map[string]int64)
	for i := range accounts {
		messages[accounts[i].Source] += accounts[i].Messages
		bytes[accounts[i].Source] += accounts[i].Read
	}
	for i := range d.cfg.Sources {
		s := &d.cfg.Sources[i]
		if app.Rereadable(s) && messages[s.Name] > int64(rows[s.Name].Messages) && bytes[s.Name] <= affordable {
			names = append(names, s.Name)
		}
	}
	return names
}
