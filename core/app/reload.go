package app

import (
	"context"
	"reflect"
	"slices"

	"github.com/earshot-dev/earshot/core/config"
)

// reload changes to the sources of another configuration: those that are no longer
// in it end, new ones begin, those that it changes do both, and all others stay as
// they are. A source that does not begin is logged; it is tried again with the next
// configuration.
func (r *runner) reload(ctx context.Context, c *config.Config, listen func(*feed)) {
	for _, section := range changed(r.Config, c) {
		r.Logger.Warn("this change of the configuration needs a restart", "section", section)
	}
	next := *r.Config
	next.Sources = c.Sources
	r.Config = &next
	var stay []*feed
	for _, f := range r.sources {
		if slices.ContainsFunc(c.Sources, func(s config.Source) bool { return reflect.DeepEqual(s, f.config) }) {
			stay = append(stay, f)
			continue
		}
		f.stop()
		<-f.done
		if err := f.sink.Detach(ctx); err != nil {
			r.Logger.Error("a source that ended is not settled", "source", f.config.Name, "error", err)
			return
		}
		r.Logger.Info("source ended", "source", f.config.Name)
	}
	r.sources = stay
	for i := range c.Sources {
		s := &c.Sources[i]
		if slices.ContainsFunc(stay, func(f *feed) bool { return f.config.Name == s.Name }) {
			continue
		}
		if err := r.add(ctx, s); err != nil {
			r.Logger.Error("a source does not begin", "source", s.Name, "error", err)
			continue
		}
		listen(r.sources[len(r.sources)-1])
		r.Logger.Info("source began", "source", s.Name)
	}
	r.Logger.Info("configuration reloaded", "sources", len(r.sources))
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
