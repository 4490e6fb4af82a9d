package flags

import (
	"fmt"
	"io"

	"k8s.io/cli-runtime/pkg/printers"
)

// ColorMode is when the formats for people use colors.
type ColorMode string

// The modes.
const (
	ColorAuto   ColorMode = "auto"
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// String implements pflag.Value.
func (m *ColorMode) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *ColorMode) Type() string { return "auto|always|never" }

// Set implements pflag.Value.
func (m *ColorMode) Set(text string) error {
	switch mode := ColorMode(text); mode {
	case ColorAuto, ColorAlways, ColorNever:
		*m = mode
		return nil
	}
	return fmt.Errorf("use %s", m.Type())
}

func (m *ColorMode) on(out io.Writer) bool {
	return *m == ColorAlways || *m == ColorAuto && printers.AllowsColorOutput(out)
}
