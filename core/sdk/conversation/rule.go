package conversation

import "strings"

// Rules are the rules of a format by the types of its records. Types that mean the same have one rule, whose key in the table is all
// of them, with spaces between; a type has one rule.
func Rules[R any](table map[string]R) map[string]R {
	rules := make(map[string]R, len(table))
	for names, rule := range table {
		for name := range strings.FieldsSeq(names) {
			if _, twice := rules[name]; twice {
				panic("two rules of " + name)
			}
			rules[name] = rule
		}
	}
	return rules
}
