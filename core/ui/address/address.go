// Package address is the content of a page's address: a range of time, filters, and parameters of the
// page's own, such as its search or order. Every page parses it, writes links with it, and turns it
// into conditions for its queries, so that a range or filter that a person set on one page is set on the
// next, and an address that is sent to another person shows them the same.
//
// Text of an address reaches SQL in bound parameters only.
package address

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Filters are the names of the filters, each of which may have any number of values: a row has to
// have one of them.
func Filters() []string {
	return []string{"agent", "delegate", "tool", "model", "format", "tenant", "project", "team", "user", "repository", "ticket", "status", "waiting"}
}

// State is the content of an address. It does not change: each method returns another.
type State struct {
	path   string
	values url.Values
	now    time.Time
}

// Parse reads an address at the time now. An error is for who wrote it: the range of time is none.
func Parse(u *url.URL, now time.Time) (State, error) {
	s := State{path: u.Path, values: make(url.Values), now: now}
	for name, list := range u.Query() {
		for _, v := range list {
			if v != "" && !slices.Contains(s.values[name], v) {
				s.values.Add(name, v)
			}
		}
	}
	_, _, err := s.Range().At(now)
	return s, err
}

// Range is the range of time.
func (s State) Range() Range { return Range{s.values.Get("from"), s.values.Get("to")} }

// Times are the ends of the range of time.
func (s State) Times() (from, to time.Time) {
	from, to, _ = s.Range().At(s.now) // Parse has seen it
	return from, to
}

// Label names the range of time.
func (s State) Label() string { return s.Range().Label(s.now) }

// Get is a parameter of the page's own; empty when it is absent.
func (s State) Get(name string) string { return s.values.Get(name) }

// List has all values of a filter or parameter.
func (s State) List(name string) []string { return slices.Clone(s.values[name]) }

// Has reports whether a filter or parameter has the value.
func (s State) Has(name, value string) bool { return slices.Contains(s.values[name], value) }

// Or is the state with that range of time where the address has none: a page's own default.
func (s State) Or(r Range) State {
	if s.values.Has("from") || s.values.Has("to") {
		return s
	}
	return s.With("from", r.From, "to", r.To)
}

// With is the state with parameters replaced, as name, value, name, value; an empty value
// removes one.
func (s State) With(pairs ...string) State {
	s.values = maps.Clone(s.values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			s.values.Del(pairs[i])
		} else {
			s.values[pairs[i]] = []string{pairs[i+1]}
		}
	}
	return s
}

// Without is the state without one value of a filter.
func (s State) Without(name, value string) State {
	s.values = maps.Clone(s.values)
	s.values[name] = slices.DeleteFunc(slices.Clone(s.values[name]), func(v string) bool { return v == value })
	if len(s.values[name]) == 0 {
		s.values.Del(name)
	}
	return s
}

// In is the state with another range of time.
func (s State) In(r Range) State { return s.With("from", r.From, "to", r.To) }

// To is the state on another page: the range of time and the filters stay, parameters of the
// page's own do not.
func (s State) To(path string) State {
	out := State{path: path, values: make(url.Values), now: s.now}
	for _, name := range append(Filters(), "from", "to") {
		if list, ok := s.values[name]; ok {
			out.values[name] = list
		}
	}
	return out
}

// At is the state with another path: parameters of the page's own stay too.
func (s State) At(path string) State {
	s.path = path
	return s
}

// String is the address.
func (s State) String() string {
	return (&url.URL{Path: s.path, RawQuery: s.values.Encode()}).String()
}

// Pair is a parameter with one value.
type Pair struct{ Name, Value string }

// Pairs are the parameters but those of the names, for the hidden fields of a form that sets these.
func (s State) Pairs(except ...string) []Pair {
	var out []Pair
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		if slices.Contains(except, name) {
			continue
		}
		for _, v := range s.values[name] {
			out = append(out, Pair{name, v})
		}
	}
	return out
}

// Picked are the filters that are set.
func (s State) Picked() []Pair {
	var out []Pair
	for _, name := range Filters() {
		for _, v := range s.values[name] {
			out = append(out, Pair{name, v})
		}
	}
	return out
}

// Columns are the SQL expressions of a query for the names of filters, and its time for "time"; where a row lasts, its
// end is "until", and a row is in a range that it overlaps. That of "waiting" is a condition, which waiting=yes and
// waiting=no pick; the others are texts.
type Columns map[string]string

// Where is the condition for the rows of the range that the filters pick, and its parameters. A
// filter without a column picks every row: Unused lists these.
func (s State) Where(columns Columns) (sql string, params map[string]string) {
	params = make(map[string]string)
	var and []string
	if column := columns["time"]; column != "" {
		from, to := s.Times()
		until := columns["until"]
		if until == "" {
			until = column
		}
		if !s.Range().All() {
			params["from_ms"] = strconv.FormatInt(from.UnixMilli(), 10)
			and = append(and, until+" >= fromUnixTimestamp64Milli({from_ms:Int64})")
		}
		if s.values.Has("to") {
			params["to_ms"] = strconv.FormatInt(to.UnixMilli(), 10)
			and = append(and, column+" <= fromUnixTimestamp64Milli({to_ms:Int64})")
		}
	}
	for _, name := range Filters() {
		column, list := columns[name], s.values[name]
		if column == "" || len(list) == 0 {
			continue
		}
		if name == "waiting" {
			if yes, no := slices.Contains(list, "yes"), slices.Contains(list, "no"); yes && !no {
				and = append(and, "("+column+")")
			} else if no && !yes {
				and = append(and, "NOT ("+column+")")
			}
			continue
		}
		var in []string
		for i, v := range list {
			p := fmt.Sprintf("%s_%d", name, i)
			params[p] = url.PathEscape(v) // a backslash means different things by HTTP and by the native protocol
			in = append(in, "decodeURLComponent({"+p+":String})")
		}
		and = append(and, column+" IN ("+strings.Join(in, ", ")+")")
	}
	if len(and) == 0 {
		return "1", params
	}
	return strings.Join(and, " AND "), params
}

// Unused are the filters that are set and for which there is no column.
func (s State) Unused(columns Columns) []Pair {
	return slices.DeleteFunc(s.Picked(), func(p Pair) bool { return columns[p.Name] != "" })
}
