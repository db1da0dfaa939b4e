"""`gpugate fleet`: one report from the tables that the audits of many clusters wrote."""
