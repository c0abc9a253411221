// Command security runs the attacks of docs/security.md, each a test, and prints a line for
// each: the attack, and its outcome. The table is the list: a row whose test is gone or
// fails ends it with status 1.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const table = "docs/security.md"

// row is an attack with the tests that make it, all of one package.
type row struct {
	attack, guarantee, pkg string
	tests                  []string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "security:", err)
		os.Exit(1)
	}
}

func run() error {
	b, err := os.ReadFile(table)
	if err != nil {
		return err
	}
	rows, err := parse(string(b))
	if err != nil {
		return err
	}
	outcomes, ran, failed := make(map[string]string), make(map[string]bool), 0
	for _, r := range rows {
		if !ran[r.pkg] {
			ran[r.pkg] = true
			if err := test(r.pkg, testsOf(rows, r.pkg), outcomes); err != nil {
				return err
			}
		}
		result := "withstood: " + r.guarantee
		for _, t := range r.tests {
			switch outcomes[r.pkg+" "+t] {
			case "pass":
			case "skip":
				result = "not run here: " + t
			case "":
				result = "FAILED: there is no test " + t
			default:
				result = "FAILED: go test -run '^" + t + "$' " + r.pkg
			}
			if result[0] == 'F' {
				failed++
				break
			}
		}
		fmt.Printf("%s\n    %s\n", r.attack, result)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d attacks were not withstood", failed, len(rows))
	}
	fmt.Printf("%d attacks, none of them failed\n", len(rows))
	return nil
}

var cell = regexp.MustCompile("^`([^`]+)` (Test[A-Za-z0-9]+(?:, Test[A-Za-z0-9]+)*)$")

// parse reads the rows of the table.
func parse(text string) (rows []row, err error) {
	for line := range strings.Lines(text) {
		c := strings.Split(strings.TrimSpace(line), " | ")
		if len(c) != 3 || !strings.HasPrefix(c[0], "| ") || c[0] == "| attack" {
			continue
		}
		m := cell.FindStringSubmatch(strings.TrimSuffix(c[2], " |"))
		if m == nil {
			return nil, fmt.Errorf("%s: no package and test in %q", table, c[2])
		}
		rows = append(rows, row{strings.TrimPrefix(c[0], "| "), c[1], m[1], strings.Split(m[2], ", ")})
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: no rows", table)
	}
	return rows, nil
}

func testsOf(rows []row, pkg string) (out []string) {
	for _, r := range rows {
		if r.pkg == pkg {
			out = append(out, r.tests...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// test runs tests of a package and records the outcome of each: pass, skip or fail.
func test(pkg string, tests []string, outcomes map[string]string) error {
	cmd := exec.Command("go", "test", "-json", "-count=1", "-timeout=10m", "-run", "^("+strings.Join(tests, "|")+")$", pkg)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil { // the go command's own words
			continue
		}
		if slices.Contains(tests, event.Test) && slices.Contains([]string{"pass", "skip", "fail"}, event.Action) {
			outcomes[pkg+" "+event.Test] = event.Action
		}
	}
	if err != nil && errs.Len() > 0 {
		fmt.Fprintf(os.Stderr, "%s: %s", pkg, errs.Bytes())
	}
	return lines.Err()
}
