package attach

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// Syntax is that of a settings file.
type Syntax string

// Syntaxes.
const (
	JSON Syntax = "json" // with comments and trailing commas
	TOML Syntax = "toml"
	Env  Syntax = "env"  // NAME=value lines
	List Syntax = "yaml" // an item of a list in a YAML file; the value is the item's text in flow style
)

// Name is how a person calls the setting.
func (s Setting) Name() string { return strings.Join(s.Keys, ".") }

// edit is a text with a value set, and the value before.
type edit struct {
	text     []byte
	old, was *string
	depth    int
}

func (s Syntax) get(text []byte, keys []string) (string, bool, error) {
	switch s {
	case JSON:
		v, err := parseJSON(text)
		if err != nil {
			return "", false, err
		}
		return str(lookup(v, keys))
	case TOML:
		v, err := parseTOML(text)
		if err != nil {
			return "", false, err
		}
		return str(lookup(v, keys))
	case Env:
		_, _, value, ok := envLine(text, keys[0])
		return value, ok, nil
	}
	return "", false, nil
}

func (s Syntax) set(text []byte, keys []string, value string) (edit, error) {
	switch s {
	case JSON:
		return setJSON(text, keys, value)
	case TOML:
		return setTOML(text, keys, value)
	case Env:
		return setEnv(text, keys[0], value)
	}
	return addItem(text, keys[0], value)
}

// unset restores the value before a change.
func (s Syntax) unset(text []byte, c *Change) ([]byte, error) {
	switch s {
	case JSON:
		return unsetJSON(text, c)
	case TOML:
		return unsetTOML(text, c)
	}
	return unsetLine(text, c)
}

// str is a value that has to be a text.
func str(v any, ok bool) (string, bool, error) {
	if !ok {
		return "", false, nil
	}
	t, isText := v.(string)
	if !isText {
		return "", false, fmt.Errorf("the value there is no text but %v", v)
	}
	return t, true, nil
}

func lookup(v any, keys []string) (any, bool) {
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[k]; !ok {
			return nil, false
		}
	}
	return v, true
}

// with sets a value in parsed settings.
func with(m map[string]any, keys []string, value string) map[string]any {
	at := m
	for _, k := range keys[:len(keys)-1] {
		next, ok := at[k].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[k] = next
		}
		at = next
	}
	at[keys[len(keys)-1]] = value
	return m
}

func parseJSON(text []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}
	std, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	var m map[string]any
	if err := json.Unmarshal(std, &m); err != nil || m == nil {
		return nil, errors.New("not valid JSON: no object")
	}
	return m, nil
}

func setJSON(text []byte, keys []string, value string) (edit, error) {
	before, err := parseJSON(text)
	if err != nil {
		return edit{}, err
	}
	if _, _, err := str(lookup(before, keys)); err != nil {
		return edit{}, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return edit{}, err
	}
	var e edit
	at := &root
	for i, k := range keys {
		object, ok := at.Value.(*hujson.Object)
		if !ok {
			return edit{}, fmt.Errorf("%s is no object", strings.Join(keys[:i], "."))
		}
		last := i == len(keys)-1
		if m := member(object, k); m != nil {
			e.depth = i + 1
			if at = &m.Value; last {
				literal, ok := at.Value.(hujson.Literal)
				if !ok || literal.Kind() != '"' {
					return edit{}, fmt.Errorf("%s is no text", strings.Join(keys, "."))
				}
				old, was := string(literal), literal.String()
				e.old, e.was = &old, &was
				at.Value = hujson.String(value)
			}
			continue
		}
		var v hujson.ValueTrimmed = &hujson.Object{}
		if last {
			v = hujson.String(value)
		}
		at = insert(object, indent(text, i+1), k, v)
	}
	e.text = root.Pack()
	after, err := parseJSON(e.text)
	if err != nil || !reflect.DeepEqual(after, with(before, keys, value)) {
		return edit{}, fmt.Errorf("it has a form that cannot be changed safely: set %s to %q yourself", strings.Join(keys, "."), value)
	}
	return e, nil
}

func member(o *hujson.Object, key string) *hujson.ObjectMember {
	for i := range o.Members {
		if l, ok := o.Members[i].Name.Value.(hujson.Literal); ok && l.String() == key {
			return &o.Members[i]
		}
	}
	return nil
}

// insert adds a first member, in a line of its own where the others have one.
func insert(o *hujson.Object, margin, key string, v hujson.ValueTrimmed) *hujson.Value {
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(key)}, Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: v}}
	if len(o.Members) == 0 && margin == "" {
		o.AfterExtra = nil
	} else if len(o.Members) == 0 {
		m.Name.BeforeExtra = hujson.Extra("\n" + margin)
		if len(bytes.TrimSpace(o.AfterExtra)) > 0 { // a comment
			m.Name.BeforeExtra = append(bytes.TrimRight(o.AfterExtra, " \t\r\n"), m.Name.BeforeExtra...)
		}
		o.AfterExtra = hujson.Extra("\n" + margin[:len(margin)-min(len(margin), unit(margin))])
	} else if first := o.Members[0].Name.BeforeExtra; bytes.ContainsRune(first, '\n') {
		m.Name.BeforeExtra = hujson.Extra("\n" + margin)
		if i := bytes.LastIndexByte(first, '\n'); len(bytes.TrimSpace(first[i:])) == 0 {
			m.Name.BeforeExtra = bytes.Clone(first[i:])
		}
	} else {
		o.Members[0].Name.BeforeExtra = append(hujson.Extra(" "), bytes.TrimLeft(first, " ")...)
		m.Name.BeforeExtra = bytes.Clone(first)
	}
	o.Members = append([]hujson.ObjectMember{m}, o.Members...)
	return &o.Members[0].Value
}

// unit is the length of one step of a margin that insert made.
func unit(margin string) int {
	if strings.HasPrefix(margin, "\t") {
		return 1
	}
	return 2
}

// indent is the margin of a depth, with tabs where the text has them; empty in a text of one line.
func indent(text []byte, depth int) string {
	if line := bytes.TrimSpace(text); !bytes.ContainsRune(line, '\n') && bytes.ContainsRune(line, ':') {
		return ""
	}
	if bytes.Contains(text, []byte("\n\t")) {
		return strings.Repeat("\t", depth)
	}
	return strings.Repeat("  ", depth)
}

func unsetJSON(text []byte, c *Change) ([]byte, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	var chain []*hujson.Object
	at := &root
	for _, k := range c.Keys {
		object, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil, errors.New("it has another form now")
		}
		m := member(object, k)
		if m == nil {
			return nil, errors.New("it has another form now")
		}
		chain = append(chain, object)
		at = &m.Value
	}
	if c.Old != nil {
		at.Value = hujson.Literal(*c.Old)
		return root.Pack(), nil
	}
	for i := len(chain) - 1; i >= c.Depth; i-- {
		drop(chain[i], c.Keys[i])
		if len(chain[i].Members) > 0 {
			break // it has other members
		}
	}
	out := root.Pack()
	if _, err := parseJSON(out); err != nil {
		return nil, err
	}
	return out, nil
}

// drop removes a member, and keeps the comments around it.
func drop(o *hujson.Object, key string) {
	for i := range o.Members {
		l, ok := o.Members[i].Name.Value.(hujson.Literal)
		if !ok || l.String() != key {
			continue
		}
		gone := o.Members[i]
		o.Members = append(o.Members[:i:i], o.Members[i+1:]...)
		comments := func(e hujson.Extra) hujson.Extra {
			if len(bytes.TrimSpace(e)) == 0 {
				return nil
			}
			return e
		}
		kept := append(comments(gone.Name.BeforeExtra), comments(gone.Value.AfterExtra)...)
		switch {
		case i == 0 && len(o.Members) > 0 && len(kept) == 0 && string(o.Members[0].Name.BeforeExtra) == " ":
			o.Members[0].Name.BeforeExtra = gone.Name.BeforeExtra
		case i < len(o.Members):
			o.Members[i].Name.BeforeExtra = append(kept, o.Members[i].Name.BeforeExtra...)
		case i > 0:
			// Without a trailing comma, the space in front of the brace belongs to the object.
			last := &o.Members[i-1].Value
			if gone.Value.AfterExtra == nil {
				kept, last.AfterExtra = append(comments(last.AfterExtra), kept...), nil
			}
			o.AfterExtra = append(kept, o.AfterExtra...)
		default:
			o.AfterExtra = kept
		}
		return
	}
}

func parseTOML(text []byte) (map[string]any, error) {
	m := map[string]any{}
	if err := toml.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("not valid TOML: %w", err)
	}
	return m, nil
}

var (
	tomlTable = regexp.MustCompile(`^\s*\[`)
	tomlValue = regexp.MustCompile(`^(\s*[A-Za-z0-9_"'.-]+\s*=\s*)("(?:[^"\\]|\\.)*"|'[^']*')(.*)$`)
)

// tomlLine finds the line of a key whose value is a text in one line, and the line below which a new one
// of its table goes; -1 when there is none.
func tomlLine(lines []string, keys []string) (line, below int) {
	table, key := strings.Join(keys[:len(keys)-1], "."), keys[len(keys)-1]
	in, below := table == "", -1
	if in {
		below = 0
	}
	for i, l := range lines {
		if tomlTable.MatchString(l) {
			name := strings.Trim(strings.TrimSpace(strings.SplitN(l, "#", 2)[0]), "[] \t")
			if in = strings.NewReplacer(`"`, "", "'", "", " ", "").Replace(name) == table; in {
				below = i + 1
			}
			continue
		}
		name, _, ok := strings.Cut(l, "=")
		if in && ok && strings.Trim(strings.TrimSpace(name), `"'`) == key && tomlValue.MatchString(strings.TrimRight(l, "\r\n")) {
			return i, below
		}
	}
	return -1, below
}

func setTOML(text []byte, keys []string, value string) (edit, error) {
	before, err := parseTOML(text)
	if err != nil {
		return edit{}, err
	}
	was, is, err := str(lookup(before, keys))
	if err != nil {
		return edit{}, err
	}
	lines := strings.SplitAfter(string(text), "\n")
	at, below := tomlLine(lines, keys)
	e := edit{depth: len(keys) - 1}
	switch {
	case is && at >= 0:
		m := tomlValue.FindStringSubmatch(strings.TrimRight(lines[at], "\r\n"))
		end := lines[at][len(m[0]):]
		e.old, e.was, e.depth = &m[2], &was, len(keys)
		lines[at] = m[1] + strconv.Quote(value) + m[3] + end
	case !is && below >= 0:
		line := keys[len(keys)-1] + " = " + strconv.Quote(value) + "\n"
		lines = append(lines[:below:below], append([]string{line}, lines[below:]...)...)
	}
	e.text = []byte(strings.Join(lines, ""))
	after, err := parseTOML(e.text)
	if err != nil || !reflect.DeepEqual(after, with(before, keys, value)) {
		return edit{}, fmt.Errorf("it has a form that cannot be changed safely: set %s to %q yourself", strings.Join(keys, "."), value)
	}
	return e, nil
}

func unsetTOML(text []byte, c *Change) ([]byte, error) {
	lines := strings.SplitAfter(string(text), "\n")
	at, _ := tomlLine(lines, c.Keys)
	if at < 0 {
		return nil, errors.New("it has another form now")
	}
	if c.Old != nil {
		m := tomlValue.FindStringSubmatch(strings.TrimRight(lines[at], "\r\n"))
		lines[at] = m[1] + *c.Old + m[3] + lines[at][len(m[0]):]
	} else {
		lines = append(lines[:at:at], lines[at+1:]...)
	}
	out := []byte(strings.Join(lines, ""))
	_, err := parseTOML(out)
	return out, err
}

// envLine finds the line that sets a variable last.
func envLine(text []byte, name string) (lines []string, at int, value string, ok bool) {
	lines = strings.SplitAfter(string(text), "\n")
	at = -1
	for i, l := range lines {
		k, v, is := strings.Cut(strings.TrimPrefix(strings.TrimSpace(l), "export "), "=")
		if is && strings.TrimSpace(k) == name {
			at, ok = i, true
			value = strings.TrimSpace(v)
			if n := len(value); n >= 2 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
				value = value[1 : n-1]
			}
		}
	}
	return lines, at, value, ok
}

func setEnv(text []byte, name, value string) (edit, error) {
	if bytes.ContainsRune(text, 0) {
		return edit{}, errors.New("not a text")
	}
	lines, at, was, ok := envLine(text, name)
	line := name + "=" + value + "\n"
	var e edit
	if ok {
		old := lines[at]
		e.old, e.was, e.depth = &old, &was, 1
		lines[at] = line
	} else {
		lines = append([]string{line}, lines...)
	}
	e.text = []byte(strings.Join(lines, ""))
	return e, nil
}

// unsetLine takes out the line of a variable or of a list's item, or puts the one before back.
func unsetLine(text []byte, c *Change) ([]byte, error) {
	lines, at, _, _ := envLine(text, c.Keys[0])
	if c.Syntax == List {
		at = itemLine(lines, c.Value)
	}
	if at < 0 {
		return nil, errors.New("it has another form now")
	}
	if c.Old != nil {
		lines[at] = *c.Old
	} else {
		lines = append(lines[:at:at], lines[at+1:]...)
	}
	return []byte(strings.Join(lines, "")), nil
}

func itemLine(lines []string, item string) int {
	for i, l := range lines {
		if strings.TrimSpace(l) == "- "+item {
			return i
		}
	}
	return -1
}

// addItem adds an item behind the last one of a list at the top level of a YAML file.
func addItem(text []byte, key, item string) (edit, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return edit{}, fmt.Errorf("not valid YAML: %w", err)
	}
	byHand := fmt.Errorf("its %s have a form that cannot be changed safely: add this item yourself: - %s", key, item)
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return edit{}, byHand
	}
	root, lines := doc.Content[0], strings.SplitAfter(string(text), "\n")
	for i := 0; i+1 < len(root.Content); i += 2 {
		list := root.Content[i+1]
		if root.Content[i].Value != key {
			continue
		}
		if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 {
			return edit{}, byHand
		}
		end := len(lines)
		if i+2 < len(root.Content) {
			end = root.Content[i+2].Line - 1
		}
		blank := func(l string) bool { l = strings.TrimSpace(l); return l == "" || strings.HasPrefix(l, "#") }
		for end > list.Line && blank(lines[end-1]) {
			end--
		}
		if !strings.HasSuffix(lines[end-1], "\n") {
			return edit{}, fmt.Errorf("its last line has no end: %w", byHand)
		}
		line := strings.Repeat(" ", list.Column-1) + "- " + item + "\n"
		lines = append(lines[:end:end], append([]string{line}, lines[end:]...)...)
		return edit{text: []byte(strings.Join(lines, ""))}, nil
	}
	return edit{}, byHand
}
