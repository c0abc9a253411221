package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/earshot-dev/earshot/core/inspect"
)

// outputFlag adds -o with the forms text, the default, and json.
func outputFlag(c *cobra.Command, to *string) { formatFlag(c, to, "text", "json") }

// formatFlag adds -o with these forms, of which the first is the default.
func formatFlag(c *cobra.Command, to *string, forms ...string) {
	c.Flags().StringVarP(to, "output", "o", forms[0], strings.Join(forms, " or "))
	check := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if !slices.Contains(forms, *to) {
			return usageError{fmt.Errorf("--output %s: want %s", *to, strings.Join(forms, " or "))}
		}
		if check != nil {
			return check(c, args)
		}
		return nil
	}
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// writeJSON writes v indented.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(jsonOutput(w))
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writeTable writes rows below a head, in columns.
func writeTable(w io.Writer, head []string, rows [][]string) error {
	lines := [][]string{make([]string, len(head))}
	for i, name := range head {
		lines[0][i] = strings.ToUpper(name)
	}
	lines = append(lines, rows...)
	wide := make([]int, len(head))
	for _, cells := range lines {
		for i, c := range cells {
			wide[i] = max(wide[i], inspect.Visible(c))
		}
	}
	out := bufio.NewWriter(w)
	for _, cells := range lines {
		var text strings.Builder
		for i, c := range cells {
			text.WriteString(inspect.Pad(c, wide[i]+gap))
		}
		fmt.Fprintln(out, strings.TrimRight(text.String(), " "))
	}
	return out.Flush()
}

// terminal returns the width of the terminal behind w and whether it takes
// colors; 0 when w is none.
func terminal(w io.Writer) (width int, color bool) {
	f, ok := rawOutput(w).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 100
	}
	_, no := os.LookupEnv("NO_COLOR")
	return width, !no && os.Getenv("TERM") != "dumb"
}

// height is how many lines the terminal behind w has; 0: none, or it is not known.
func height(w io.Writer) int {
	f, ok := rawOutput(w).(*os.File)
	if !ok {
		return 0
	}
	_, n, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return n
}
