// Package color paints text for terminals that show colors.
package color
