"""Ways of grading, one module each; installed as `qualeval.graders`. Pure: values in, values out."""
