// Package attribution describes whose work it is: rules that derive dimensions, such as team and
// repository, from the facts of a turn, and budgets that bound its cost.
//
// A turn is a trace: the work of an agent on one prompt, with all agents below it. Its facts are those
// of its first run, and where that one has none, of its conversation. So the cost of a whole sub-tree
// belongs to who began it. The rules are applied in the store (exporters/clickhouse); Derive
// applies them in Go, for explanations and as the reference of the tests.
package attribution

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// Unknown is the value of a dimension that no rule derives.
const Unknown = "unknown"

// Builtin are the dimensions that each turn has, without a rule of the configuration.
func Builtin() []string {
	return []string{"team", "user", "host", "project", "repository", "branch", "ticket"}
}

// Rule derives dimensions from one fact of a turn. Rules are tried in their order: the first that
// derives a value of a dimension decides on it.
type Rule struct {
	// The fact: project (the directory), branch, user, host, agent, agent_version, source, format,
	// tenant or session; or attributes.NAME, an attribute of the protocol, and header.NAME, a
	// header of the requests. docs/who.md has the attributes that are kept.
	Field string `yaml:"field" json:"field"`
	// A regular expression (RE2). Each named group is a dimension: (?P<team>[a-z]+).
	Match string `yaml:"match" json:"match,omitempty"`
	// Dimensions with the value that they have where match matches.
	Set map[string]string `yaml:"set" json:"set,omitempty"`
	// Dimension of values.
	Dimension string `yaml:"dimension" json:"dimension,omitempty"`
	// In place of match: the value of dimension for each value of the fact.
	Values map[string]string `yaml:"values" json:"values,omitempty"`
}

// Defaults are the rules that follow those of the configuration.
func Defaults() []Rule {
	return []Rule{
		{Field: "user", Match: `(?P<user>.+)`},
		{Field: "attributes.user.email", Match: `(?P<user>.+)`},
		{Field: "attributes.user.id", Match: `(?P<user>.+)`},
		{Field: "attributes.user_id", Match: `(?P<user>.+)`},
		{Field: "host", Match: `(?P<host>.+)`},
		{Field: "attributes.host.name", Match: `(?P<host>.+)`},
		{Field: "project", Match: `(?P<project>.+)`},
		{Field: "attributes.repository", Match: `(?:^|[:/])(?P<repository>[^:/]+/[^:/]+?)(?:\.git)?/?$`},
		{Field: "project", Match: `(?P<repository>[^/\\]+)[/\\]*$`},
		{Field: "branch", Match: `(?P<branch>.+)`},
		{Field: "branch", Match: `(?:^|[^A-Za-z0-9])(?P<ticket>[A-Z][A-Z0-9]{1,9}-[0-9]+)(?:$|[^A-Za-z0-9])`},
	}
}

// fields are the facts without a prefix.
var fields = []string{"project", "branch", "user", "host", "agent", "agent_version", "source", "format", "tenant", "session"}

// KeptAttributes matches the names of the attributes that stay with a conversation for the
// rules: accounts, teams, repositories. The others are in the messages alone.
const KeptAttributes = `^(header|resource|user|enduser|account|organi[sz]ation|org|team|department|cost|repository|git|service|deployment|host|workspace|email|originator)([._-]|Id$|Email$|$)`

var keptAttributes = regexp.MustCompile(KeptAttributes)

// Attribute is the name of the attribute that the rule reads; empty: it reads another fact.
func (r *Rule) Attribute() string {
	if name, ok := strings.CutPrefix(r.Field, "attributes."); ok {
		return name
	}
	if strings.HasPrefix(r.Field, "header.") {
		return r.Field
	}
	return ""
}

var dimensionName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// Validate reports the mistakes of a rule of the configuration.
func (r *Rule) Validate(c *spec.Check) {
	if c.Required("field", r.Field) {
		if name := r.Attribute(); name == "" {
			c.OneOf("field", r.Field, fields...)
		} else if !keptAttributes.MatchString(name) {
			c.Report("field", "the attribute "+c.Quote("field", name)+" is not kept with conversations", "docs/who.md has the names that are")
		}
	}
	switch {
	case r.Match != "" && len(r.Values) > 0:
		c.Report("values", "is given beside match", "make two rules")
	case r.Match == "" && len(r.Values) == 0:
		c.Report("match", "required, or dimension and values", "")
	case r.Match != "":
		r.validateMatch(c)
	default:
		if c.Required("dimension", r.Dimension) {
			checkDimension(c, "dimension", r.Dimension)
		}
	}
}

func (r *Rule) validateMatch(c *spec.Check) {
	x, err := regexp.Compile(r.Match)
	if err != nil {
		reason := "it cannot be compiled"
		if e, ok := err.(*syntax.Error); ok {
			reason = e.Code.String()
		}
		c.Report("match", "not a regular expression: "+reason, "")
		return
	}
	named := slices.DeleteFunc(slices.Clone(x.SubexpNames()), func(n string) bool { return n == "" })
	if len(named) == 0 && len(r.Set) == 0 {
		c.Report("match", "has no named group, and set is empty", "(?P<team>[a-z]+) derives team")
	}
	if r.Dimension != "" {
		c.Report("dimension", "is of values", "a named group, or set, has the dimensions of match")
	}
	for _, name := range named {
		checkDimension(c, "match", name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Set)) {
		checkDimension(c, spec.Join("set", name), name)
	}
}

func checkDimension(c *spec.Check, key, name string) {
	if !dimensionName.MatchString(name) {
		c.Report(key, "the name of a dimension is made of a-z, 0-9 and _, got "+c.Quote(key, name), "")
	}
}

// Dimensions are the names of all dimensions of the rules: the built-in ones first, then the
// others by name.
func Dimensions(rules []Rule) []string {
	out, more := Builtin(), map[string]bool{}
	for i := range rules {
		for _, name := range rules[i].derives() {
			if !slices.Contains(out, name) {
				more[name] = true
			}
		}
	}
	return append(out, slices.Sorted(maps.Keys(more))...)
}

// derives are the names of the dimensions that the rule can derive.
func (r *Rule) derives() (out []string) {
	if r.Match == "" {
		return []string{r.Dimension}
	}
	for _, g := range r.Groups() {
		out = append(out, g.Dimension)
	}
	return append(out, slices.Sorted(maps.Keys(r.Set))...)
}

// Group is a named group of the expression of a rule.
type Group struct {
	Dimension string
	Index     int
}

// Groups are the named groups of the rule's expression.
func (r *Rule) Groups() (out []Group) {
	x, err := regexp.Compile(r.Match)
	if err != nil || r.Match == "" {
		return nil
	}
	for i, name := range x.SubexpNames() {
		if name != "" {
			out = append(out, Group{name, i})
		}
	}
	return out
}

// Derive applies rules to the facts of a turn, by the names of fields. A dimension that is not in
// the result is unknown.
func Derive(rules []Rule, fact func(field string) string) (map[string]string, error) {
	out := map[string]string{}
	set := func(name, value string) {
		if value = cmp.Or(out[name], value); value != "" {
			out[name] = value
		}
	}
	for i := range rules {
		r := &rules[i]
		value := fact(r.Field)
		if r.Match == "" {
			set(r.Dimension, r.Values[value])
			continue
		}
		x, err := regexp.Compile(r.Match)
		if err != nil {
			return nil, fmt.Errorf("attribution: rule %d: %w", i, err)
		}
		groups := x.FindStringSubmatch(value)
		if groups == nil {
			continue
		}
		for _, g := range r.Groups() {
			set(g.Dimension, groups[g.Index])
		}
		for name, constant := range r.Set {
			set(name, constant)
		}
	}
	return out, nil
}
