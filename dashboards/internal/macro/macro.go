// Package macro expands a query as Grafana and its ClickHouse data source do, so
// that the queries of dashboards can be run without either.
//
// It happens in three steps, in this order: the plugin's $__conditionalAll in the
// browser, Grafana's variables in the browser, the plugin's other macros in the
// server. The plugin's parser of brackets does not know quotes, and neither does
// this one: a query that breaks there must break here.
package macro

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Value is the choice of a variable.
type Value struct {
	All    bool
	Single bool // of a text box, which is no list
	Items  []string
}

// Of returns the value of those items.
func Of(items ...string) Value { return Value{Items: items} }

// Text returns the value of a text box.
func Text(s string) Value { return Value{Single: true, Items: []string{s}} }

// Query is the context in which a query is expanded.
type Query struct {
	From, To  time.Time
	Interval  time.Duration // width of a point
	Variables map[string]Value
}

// Expand returns the SQL that the server gets. It is an error if something is
// left that looks like a variable or a macro.
func (q Query) Expand(sql string) (string, error) {
	sql, err := q.conditional(sql)
	if err != nil {
		return "", fmt.Errorf("macro: %w", err)
	}
	if sql, err = q.variables(sql); err != nil {
		return "", fmt.Errorf("macro: %w", err)
	}
	if sql, err = q.macros(sql); err != nil {
		return "", fmt.Errorf("macro: %w", err)
	}
	if left := leftover.FindString(sql); left != "" {
		return "", fmt.Errorf("macro: %s is left over", left)
	}
	return sql, nil
}

var leftover = regexp.MustCompile(`\$[A-Za-z_{][\w:]*\}?`)

// conditional replaces $__conditionalAll(condition, $variable): the condition, or
// 1=1 when all of the variable is picked or nothing.
func (q Query) conditional(sql string) (string, error) {
	const name = "$__conditionalAll("
	for {
		at := strings.LastIndex(sql, name)
		if at < 0 {
			return sql, nil
		}
		args, end, ok := arguments(sql, at+len(name)-1)
		if !ok || len(args) != 2 {
			return "", fmt.Errorf("$__conditionalAll takes a condition and a variable, not %q", args)
		}
		v, there := q.Variables[strings.TrimPrefix(strings.TrimSpace(args[1]), "$")]
		if !there {
			return "", fmt.Errorf("$__conditionalAll: no variable %s", args[1])
		}
		condition := args[0]
		if v.All || strings.Join(v.Items, ",") == "" {
			condition = "1=1"
		}
		sql = sql[:at] + condition + sql[end:]
	}
}

// arguments splits the text in the brackets that open at the index, at the commas
// outside of inner brackets, and returns where the brackets end.
func arguments(s string, open int) (args []string, end int, ok bool) {
	depth, from := 0, open+1
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ',':
			if depth == 1 {
				args, from = append(args, s[from:i]), i+1
			}
		case ')':
			if depth--; depth == 0 {
				return append(args, s[from:i]), i + 1, true
			}
		}
	}
	return args, len(s), false
}

var variable = regexp.MustCompile(`\$(\w+)|\$\{(\w+)(?::(\w+))?\}`)

// variables replaces $name and ${name:format} of the variables that there are.
func (q Query) variables(sql string) (string, error) {
	var failed error
	out := variable.ReplaceAllStringFunc(sql, func(whole string) string {
		m := variable.FindStringSubmatch(whole)
		v, there := q.Variables[m[1]+m[2]]
		if !there {
			return whole
		}
		switch {
		case m[3] == "singlequote":
			quoted := make([]string, 0, len(v.Items))
			for _, s := range v.Items {
				quoted = append(quoted, "'"+strings.ReplaceAll(s, "'", `\'`)+"'")
			}
			if len(quoted) == 0 {
				return "''"
			}
			return strings.Join(quoted, ",")
		case m[3] == "percentencode":
			if v.Single && len(v.Items) == 1 {
				return percentEncode(v.Items[0])
			}
			if len(v.Items) == 0 {
				return ""
			}
			return percentEncode("{" + strings.Join(v.Items, ",") + "}")
		case m[3] == "" && len(v.Items) == 1:
			return v.Items[0]
		}
		failed = fmt.Errorf("%s: the format is unknown, or is none and there is not one value", whole)
		return whole
	})
	return out, failed
}

// percentEncode is Grafana's encodeURIComponentStrict.
func percentEncode(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

var call = regexp.MustCompile(`\$__(\w+)(\()?`)

// macros replaces the macros of the plugin's server side.
func (q Query) macros(sql string) (string, error) {
	var b strings.Builder
	for {
		m := call.FindStringSubmatchIndex(sql)
		if m == nil {
			b.WriteString(sql)
			return b.String(), nil
		}
		name, end := sql[m[2]:m[3]], m[1]
		var args []string
		if m[4] >= 0 {
			var ok bool
			if args, end, ok = arguments(sql, m[4]); !ok {
				return "", fmt.Errorf("$__%s: a bracket is open", name)
			}
			for i := range args {
				args[i] = strings.TrimSpace(args[i])
			}
		}
		text, err := q.macro(name, args)
		if err != nil {
			return "", err
		}
		b.WriteString(sql[:m[0]])
		b.WriteString(text)
		sql = sql[end:]
	}
}

func (q Query) macro(name string, args []string) (string, error) {
	seconds := func(t time.Time) string { return fmt.Sprintf("toDateTime(%d)", t.Unix()) }
	millis := func(t time.Time) string { return fmt.Sprintf("fromUnixTimestamp64Milli(%d)", t.UnixMilli()) }
	want, text := 0, ""
	arg := ""
	if len(args) > 0 {
		arg = args[0]
	}
	switch name {
	case "fromTime":
		text = seconds(q.From)
	case "toTime":
		text = seconds(q.To)
	case "fromTime_ms":
		text = millis(q.From)
	case "toTime_ms":
		text = millis(q.To)
	case "interval_s":
		text = fmt.Sprint(max(int(q.Interval.Seconds()), 1))
	case "timeFilter":
		want, text = 1, fmt.Sprintf("%s >= %s AND %s <= %s", arg, seconds(q.From), arg, seconds(q.To))
	case "timeFilter_ms":
		want, text = 1, fmt.Sprintf("%s >= %s AND %s <= %s", arg, millis(q.From), arg, millis(q.To))
	case "timeInterval":
		want, text = 1, fmt.Sprintf("toStartOfInterval(toDateTime(%s), INTERVAL %d second)", arg, max(int(q.Interval.Seconds()), 1))
	case "timeInterval_ms":
		want, text = 1, fmt.Sprintf("toStartOfInterval(toDateTime64(%s, 3), INTERVAL %d millisecond)", arg, max(q.Interval.Milliseconds(), 1))
	default:
		return "", fmt.Errorf("$__%s is no macro of the data source", name)
	}
	if len(args) != want || want == 1 && arg == "" {
		return "", fmt.Errorf("$__%s takes %d arguments, not %q", name, want, args)
	}
	return text, nil
}
