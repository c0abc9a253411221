package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"
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
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(head, "\t")))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	return t.Flush()
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
