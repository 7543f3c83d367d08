"""Ways of grading, one module each, as `qualeval.graders`. Pure: values in, values out."""
