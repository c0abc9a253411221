package app

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/config"
)

// reload changes to the sources of another configuration: those that are no longer
// in it end, new ones begin, those that it changes do both, and all others stay as
// they are. A source that does not begin is logged, and tried again with the next configuration. One that
// does not settle keeps its name; it is tried again when again is ready.
func (r *runner) reload(ctx context.Context, c *config.Config, listen func(*feed)) (again <-chan time.Time) {
	for _, section := range changed(r.Config, c) {
		r.Logger.Warn("this change of the configuration needs a restart", "section", section)
	}
	next := *r.Config
	next.Sources = c.Sources
	r.Config = &next
	stays := func(f *feed) bool {
		return !f.ended && slices.ContainsFunc(c.Sources, func(n config.Source) bool { return reflect.DeepEqual(n, f.config) })
	}
	// All that end stop before the first is settled: readers of a tap need its listener
	// to be gone.
	var stay, end []*feed
	for _, f := range r.sources {
		if stays(f) {
			stay = append(stay, f)
			continue
		}
		end = append(end, f)
		f.ended = true
		f.stop()
	}
	within, cancel := context.WithTimeout(ctx, r.Settle)
	defer cancel()
	for _, f := range end {
		<-f.done
		if err := f.pipeline.Detach(within); err != nil {
			r.Logger.Error("a source that ended is not settled yet: the exporters do not have all of it", "source", f.config.Name, "error", err)
			stay, again = append(stay, f), time.After(r.Settle)
			continue
		}
		r.Logger.Info("source ended", "source", f.config.Name, "format", f.pipeline.Format())
	}
	r.sources = stay
	for i := range c.Sources {
		s := &c.Sources[i]
		if slices.ContainsFunc(stay, func(f *feed) bool { return f.config.Name == s.Name }) {
			continue
		}
		n := len(r.sources)
		if err := r.add(ctx, s); err != nil {
			r.Logger.Error("a source does not begin", "source", s.Name, "error", err)
			r.sources = r.sources[:n]
			continue
		}
		for _, f := range r.sources[n:] {
			listen(f)
		}
		r.Logger.Info("source began", "source", s.Name)
	}
	r.Logger.Info("configuration reloaded", "sources", len(r.sources))
	return again
}

// changed names the sections other than sources in which two configurations differ.
func changed(was, is *config.Config) (out []string) {
	a, b := reflect.ValueOf(*was), reflect.ValueOf(*is)
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if key := f.Tag.Get("yaml"); f.IsExported() && key != "sources" && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			out = append(out, key)
		}
	}
	return out
}
