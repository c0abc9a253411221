package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// Suite is a subject and the cases to test it with.
type Suite struct {
	Subject Subject
	// Twins are the same decoder reached in other ways; C8 compares with them.
	Twins []Subject
	Cases []Case
	// LeavesOut lists the fields that the decoder leaves out on purpose, for C14; nil when
	// it has no list.
	LeavesOut *unknown.List
	// Seed decides every random choice. The same seed makes the same choices.
	Seed uint64
	// Sparse has checks that repeat a case at many positions take a sixth of them. The race
	// detector slows a decoder down by five, and finds no more at the others.
	Sparse bool
	// Checks names the checks to make ("C5"); all when empty.
	Checks []string
	// Timeout is how long a decoder may take over one batch; 30 s when zero.
	Timeout time.Duration
}

// Status is the outcome of a check.
type Status string

// The statuses.
const (
	Pass Status = "pass"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Result is the outcome of one check for one case.
type Result struct {
	Check  string `json:"check"`          // "C7"
	Title  string `json:"title"`          // "aliasing"
	Case   string `json:"case,omitempty"` // empty when the check concerns all cases together
	Status Status `json:"status"`
	Rules  string `json:"rules"`            // those that the check proves: "D3 D12"
	Rule   string `json:"rule,omitempty"`   // of a failure: the rule that is broken
	Reason string `json:"reason,omitempty"` // of a failure or a skip: one sentence
	Detail string `json:"detail,omitempty"` // of a failure: the difference, over several lines
}

// violation is the error of a broken rule.
type violation struct{ rule, reason, detail string }

func (b *violation) Error() string {
	s := b.rule + ": " + b.reason
	if b.detail != "" {
		s += "\n" + b.detail
	}
	return s
}

func violates(rule, format string, args ...any) error {
	return &violation{rule: rule, reason: fmt.Sprintf(format, args...)}
}

// skipped is the reason why a check could not run.
type skipped string

func (s skipped) Error() string { return string(s) }

// check is one check of the suite. each is called for every case, once for the
// cases together; either may be nil.
type check struct {
	name, title, rules string
	each               func(context.Context, *runner) error
	once               func(context.Context, *runner) error
	// first is set for checks that run even when a second run over the same frames has
	// other output: the other checks compare, and would only repeat that failure.
	first bool
}

// CheckNames returns the names of all checks, in order.
func CheckNames() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

func checks() []check {
	return []check{
		{name: "C1", title: "golden", rules: "D4 D5", each: golden, first: true},
		{name: "C2", title: "recut", rules: "D5", each: recut},
		{name: "C3", title: "prefix", rules: "D6 D9", each: prefix},
		{name: "C4", title: "reload", rules: "D5", each: reloadCase, once: reloadAny},
		{name: "C5", title: "replay", rules: "D2 D5", each: replay},
		{name: "C6", title: "interleave", rules: "D1", each: interleave},
		{name: "C7", title: "aliasing", rules: "D3 D12", each: aliasing},
		{name: "C8", title: "transport", rules: "D2 D4", each: transport},
		{name: "C9", title: "noise", rules: "D5 D7", each: noise},
		{name: "C10", title: "bad frames", rules: "D8", each: badFrames},
		{name: "C11", title: "lifecycle", rules: "D1 D10", each: lifecycle, first: true},
		{name: "C12", title: "determinism", rules: "D4 D5", each: determinism, first: true},
		{name: "C13", title: "memory", rules: "D11", once: memory},
		{name: "C14", title: "lossless", rules: "D7", each: lossless},
	}
}

// runner makes the checks of one case. For a check of all cases c and base are
// nil.
type runner struct {
	suite *Suite
	c     *Case
	base  *run // the output of the subject for the case
	// steady is set when a second run had the same output.
	steady bool
	rand   *rand.Rand
}

// Run makes all checks and calls report with each result, case by case.
func (s *Suite) Run(ctx context.Context, report func(Result)) {
	all := slices.DeleteFunc(checks(), func(c check) bool {
		return len(s.Checks) > 0 && !slices.Contains(s.Checks, c.name)
	})
	for i := range s.Cases {
		r := &runner{suite: s, c: &s.Cases[i]}
		err := r.begin(ctx)
		for _, c := range all {
			switch {
			case c.each == nil:
			case err != nil && c.name == "C1":
				report(c.result(r.c.Name, err))
			case err != nil:
				report(c.result(r.c.Name, skipped("the case does not decode: see C1")))
			case !r.steady && !c.first:
				report(c.result(r.c.Name, skipped("two runs over the same frames differ: see C12")))
			default:
				r.seed(c.name)
				report(c.result(r.c.Name, c.each(ctx, r)))
			}
		}
	}
	for _, c := range all {
		if c.once != nil {
			r := &runner{suite: s}
			r.seed(c.name)
			report(c.result("", c.once(ctx, r)))
		}
	}
}

// begin decodes the case, twice.
func (r *runner) begin(ctx context.Context) error {
	var err error
	if r.base, err = r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames, playOptions{}); err != nil {
		return err
	}
	second, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames, playOptions{})
	r.steady = err == nil && sameRun("", r.base, second) == nil
	return nil
}

func (r *runner) seed(check string) {
	h := fnv.New64a()
	h.Write([]byte(check))
	if r.c != nil {
		h.Write([]byte(r.c.Name))
	}
	r.rand = rand.New(rand.NewPCG(r.suite.Seed, h.Sum64()))
}

func (c *check) result(name string, err error) Result {
	res := Result{Check: c.name, Title: c.title, Case: name, Status: Pass, Rules: c.rules}
	var b *violation
	var why skipped
	switch {
	case err == nil:
	case errors.As(err, &why):
		res.Status, res.Reason = Skip, string(why)
	case errors.As(err, &b):
		res.Status, res.Rule, res.Reason, res.Detail = Fail, b.rule, b.reason, b.detail
	default: // the call of the decoder or the suite itself failed
		res.Status, res.Rule, res.Reason = Fail, "D9", err.Error()
	}
	return res
}

func (s *Suite) timeout() time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return 30 * time.Second
}
