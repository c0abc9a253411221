package ui

import (
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/ui/address"
)

// changesPage is when agents, tools and models changed, in one range of time.
type changesPage struct {
	State address.State
	Agent string // only of this one
	*inspect.Changed
}

// longestChanges is the longest range that is searched for changes: each day of it is a look at every series.
const longestChanges = 92 * 24 * time.Hour

func (u *UI) changes(r request) (string, any, error) {
	p := &changesPage{State: r.State, Agent: r.State.Get("agent")}
	from, to := r.State.Times()
	if to.After(r.Now) {
		to = r.Now
	}
	found, err := inspect.WhatChanged(r.Context(), u.q, inspect.ChangedFilter{Since: min(longestChanges, max(time.Minute, to.Sub(from))), Now: to, Agent: p.Agent, Prices: u.prices})
	if err != nil {
		return "", p, err
	}
	p.Changed = found
	return "", p, nil
}
