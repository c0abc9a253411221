package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// outputFlag adds -o.
func outputFlag(c *cobra.Command, to *string) {
	c.Flags().StringVarP(to, "output", "o", "text", "text or json")
	check := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if *to != "text" && *to != "json" {
			return usageError{fmt.Errorf("--output %s: want text or json", *to)}
		}
		if check != nil {
			return check(c, args)
		}
		return nil
	}
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
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
