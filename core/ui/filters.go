package ui

import (
	"fmt"
	"maps"
	"slices"

	"github.com/earshot-dev/earshot/core/ui/address"
)

// filters are the choices above a page's rows: {{template "filters" .Data.Filters}}.
type filters struct {
	State   address.State
	Choices []choice
	Picked  []picked
}

// choice is a filter with the values that it can have here.
type choice struct {
	Name, Label string
	Values      []string
}

// picked is a filter that is set.
type picked struct {
	address.Pair
	Without address.State // the page without it
	Unused  bool          // the page's query has no column for it
}

// Hidden are the parameters of the address besides the choices.
func (f filters) Hidden() []address.Pair {
	var names []string
	for _, c := range f.Choices {
		names = append(names, c.Name)
	}
	return f.State.Pairs(names...)
}

// filters reads the values that the columns have in the rows of the range, of a table or view. A value
// that is picked is offered even when no row has it.
func (u *UI) filters(r request, table string, columns address.Columns) (filters, error) {
	f := filters{State: r.State}
	unused := r.State.Unused(columns)
	for _, p := range r.State.Picked() {
		f.Picked = append(f.Picked, picked{p, r.State.Without(p.Name, p.Value), slices.Contains(unused, p)})
	}
	// One pass over the rows for all choices; the filters that are set do not narrow them.
	everything := r.State.To("/")
	for _, p := range everything.Picked() {
		everything = everything.With(p.Name, "")
	}
	where, params := everything.Where(columns)
	var selected string
	for _, name := range address.Filters() {
		if columns[name] == "" {
			continue
		}
		c := choice{Name: name, Label: name}
		if name == "waiting" {
			c.Label, c.Values = "waited for a person", []string{"yes", "no"}
		} else {
			if selected != "" {
				selected += ", "
			}
			selected += fmt.Sprintf("arraySort(groupUniqArray(500)(toString(%s)))", columns[name])
		}
		f.Choices = append(f.Choices, c)
	}
	if selected == "" {
		return f, nil
	}
	err := u.q.Each(r.Context(), "SELECT "+selected+" FROM "+table+" WHERE "+where, params, func(v []any) error {
		for i := range f.Choices {
			c := &f.Choices[i]
			if c.Name == "waiting" {
				continue
			}
			if len(v) == 0 {
				return fmt.Errorf("ui: too few columns for the filters")
			}
			list, ok := v[0].([]string)
			if !ok {
				return fmt.Errorf("ui: the values of %s are %T", c.Name, v[0])
			}
			v = v[1:]
			values := make(map[string]bool)
			for _, s := range append(list, r.State.List(c.Name)...) {
				if s != "" {
					values[s] = true
				}
			}
			c.Values = slices.Sorted(maps.Keys(values))
		}
		return nil
	})
	// A choice between nothing is none.
	f.Choices = slices.DeleteFunc(f.Choices, func(c choice) bool {
		return len(c.Values) == 0 || c.Name == "tenant" && len(c.Values) == 1 && !r.State.Has("tenant", c.Values[0])
	})
	return f, err
}

// replace has the choices of other filters in place of those of the same name.
func (f *filters) replace(others filters) {
	for _, c := range others.Choices {
		if i := slices.IndexFunc(f.Choices, func(x choice) bool { return x.Name == c.Name }); i >= 0 {
			f.Choices[i] = c
		}
	}
}
