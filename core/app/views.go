package app

import (
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/semconv"
)

// view is the View of assemble.Settings.
func view(format string) (v assemble.View) {
	v.Family, v.Rank, v.Measures, v.OwnNames = semconv.View(format)
	return v
}

// reconciled returns the families of which the sources read several views: the others have
// nothing to be merged with, and no memory of their facts is kept.
func reconciled(sources []config.Source) func(family string) bool {
	formats := make(map[string]map[string]bool)
	for i := range sources {
		for _, f := range sources[i].Formats() {
			family := view(f).Family
			if formats[family] == nil {
				formats[family] = make(map[string]bool)
			}
			formats[family][f] = true
		}
	}
	return func(family string) bool { return len(formats[family]) > 1 }
}

// hops returns the hops that a recording of the format has.
func hops(format string) (h assemble.Hops) {
	h.Calls, h.Texts, h.Turns = semconv.Hops(format)
	return h
}

// hopsRead returns the hops that the sources read.
func hopsRead(sources []config.Source) (all assemble.Hops) {
	for i := range sources {
		for _, f := range sources[i].Formats() {
			h := hops(f)
			all.Calls, all.Texts, all.Turns = all.Calls || h.Calls, all.Texts || h.Texts, all.Turns || h.Turns
		}
	}
	return all
}
